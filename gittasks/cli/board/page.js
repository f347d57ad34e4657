'use strict';
// Texts come from people and agents nobody knows: they only ever become text nodes, never markup.
(() => {
  const CHUNK = 40;
  const POLL = 1500;
  const MARGIN = 24, DRAWN_AT_ONCE = 400;
  const SVG = 'http://www.w3.org/2000/svg';
  const VIEWS = {board: 'Board', graph: 'Graph', timeline: 'Timeline', inbox: 'Inbox', numbers: 'Numbers'};
  const GROUPS = {
    waiting: ['Waiting', '\u25CB', ['NEW', 'BLOCKED']],
    working: ['In work', '\u25CF', ['DESIGN', 'PLAN', 'WORK']],
    judged: ['Being judged', '\u25D0', ['CHECK', 'DESIGN_REVIEW', 'PLAN_REVIEW', 'WORK_REVIEW', 'MANAGER_REVIEW']],
    held: ['Held', '\u25A0', ['HELD_DESIGN', 'HELD_PLAN', 'HELD_WORK']],
    landed: ['Landed', '\u2713', []],
    gone: ['Aborted', '\u2715', []],
  };
  const GROUP_OF = {};
  for (const [group, [, , states]] of Object.entries(GROUPS)) for (const state of states) GROUP_OF[state] = group;
  const RANGES = [['all', 'All time', 0], ['month', '30 days', 30 * 86400], ['week', '7 days', 7 * 86400], ['day', '24 hours', 86400]];

  const byId = (id) => document.getElementById(id);
  const live = document.documentElement.dataset.live === 'yes';
  let data, byTask, dependents, children, waiting, readyRole;
  let limits = {}, view = 'board', drawing = null, range = null, asList = null, printing = false;
  let chosen = null, openTask = null, opener = null, lost = false;

  // -- making elements

  function el(tag, attributes, ...inside) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
      else made.setAttribute(name, value === true ? '' : value);
    }
    made.append(...inside.filter((one) => one !== null && one !== undefined && one !== false));
    return made;
  }

  function svgEl(tag, attributes, text) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  const hidden = (text) => el('span', {class: 'hidden'}, text);
  const glyph = (group) => el('span', {class: 'glyph', 'aria-hidden': 'true'}, GROUPS[group][1]);
  const badge = (text, strong) => el('span', {class: strong ? 'badge strong' : 'badge'}, el('span', {class: 'text'}, text));
  const idOf = (task) => el('span', {class: 'id'}, task.id);
  const title = (task) => el('span', {class: 'text', dir: 'auto'}, task.title);
  const said = (state) => { const words = state.replace(/_/g, ' ').toLowerCase(); return words[0].toUpperCase() + words.slice(1); };
  const groupOf = (task) => task.state === 'CLOSED' ? (task.outcome === 'landed' ? 'landed' : 'gone') : GROUP_OF[task.state];
  const stateOf = (task) => task.state === 'CLOSED' ? GROUPS[groupOf(task)][0] : said(task.state);
  const stateBadge = (task) => el('span', {class: 'state ' + groupOf(task)}, glyph(groupOf(task)), stateOf(task));
  const plural = (count, one, many) => count + ' ' + (count === 1 ? one : many || one + 's');

  function taskLink(task, key, ...inside) {
    return el('button', {type: 'button', class: 'link', 'data-task': task.id, 'data-key': key + task.id}, ...(inside.length ? inside : [title(task)]));
  }

  function named(id) {
    const task = byTask.get(id);
    return task ? taskLink(task, 'named-', el('span', {class: 'id'}, id), ' ', title(task)) : el('span', {class: 'id'}, id);
  }

  // -- times

  const now = () => live ? Math.floor(Date.now() / 1000) : data.as_of;

  function duration(seconds) {
    for (const [limit, unit, name] of [[60, 1, 's'], [3600, 60, 'min'], [172800, 3600, 'h']]) {
      if (seconds < limit) return Math.floor(Math.max(seconds, 0) / unit) + ' ' + name;
    }
    return Math.floor(seconds / 86400) + ' d';
  }

  const iso = (at) => new Date(at * 1000).toISOString();
  const stamp = (at) => iso(at).slice(0, 16).replace('T', ' ');
  const ago = (at) => el('time', {datetime: iso(at), title: stamp(at) + ' UTC'}, duration(now() - at));

  // -- what the data means

  function take(found) {
    data = found;
    byTask = new Map(data.tasks.map((task) => [task.id, task]));
    dependents = new Map();
    children = new Map();
    const add = (map, key, value) => map.has(key) ? map.get(key).push(value) : map.set(key, [value]);
    for (const task of data.tasks) {
      task.visits = task.visits || [];
      for (const need of task.needs || []) add(dependents, need, task.id);
      if (task.parent) add(children, task.parent, task.id);
    }
    waiting = new Map();
    for (const task of data.tasks) {
      const open = (task.needs || []).filter((need) => !byTask.has(need) ? false : byTask.get(need).outcome !== 'landed');
      if (task.state !== 'CLOSED' && open.length) waiting.set(task.id, open);
      task.sought = [task.id, task.title, task.state, stateOf(task), task.holder, task.assignee, ...(task.labels || [])].join('\n').toLowerCase();
    }
    readyRole = new Map(data.ready);
  }

  // -- which tasks are shown

  function wish() {
    return {words: byId('words').value.trim().toLowerCase().split(/\s+/).filter(Boolean), group: byId('group').value, who: byId('who').value, label: byId('label').value};
  }

  function isWished(task, {words, group, who, label}) {
    if (words.some((word) => !task.sought.includes(word))) return false;
    if (group === 'open' ? task.state === 'CLOSED' : group === 'ready' ? !readyRole.has(task.id) : group && groupOf(task) !== group) return false;
    if (who && task.holder !== who && task.assignee !== who) return false;
    return !label || (task.labels || []).includes(label);
  }

  const isFiltered = () => { const {words, group, who, label} = wish(); return Boolean(words.length || group || who || label); };

  function wished() {
    const wanted = wish();
    return data.tasks.filter((task) => isWished(task, wanted));
  }

  function fillFilters() {
    const names = new Map(), labels = new Map();
    for (const task of data.tasks) {
      for (const name of new Set([task.holder, task.assignee])) if (name) names.set(name, (names.get(name) || 0) + 1);
      for (const label of task.labels || []) labels.set(label, (labels.get(label) || 0) + 1);
    }
    const most = (map) => [...map].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 100).map(([name, count]) => [name, name + ' (' + count + ')']);
    fill(byId('group'), [['', 'Any state'], ['open', 'Open'], ['ready', 'Ready to take'], ...Object.entries(GROUPS).map(([group, [name]]) => [group, name])]);
    fill(byId('who'), [['', 'Anybody'], ...most(names)]);
    fill(byId('label'), [['', 'Any label'], ...most(labels)]);
  }

  function fill(select, options) {
    const kept = select.value || select.dataset.wanted || '';
    const have = [...select.options].map((one) => one.value + '\n' + one.textContent).join('\n\n');
    if (have !== options.map((one) => one.join('\n')).join('\n\n')) select.replaceChildren(...options.map(([value, text]) => el('option', {value}, text)));
    select.value = kept;
    if (select.selectedIndex < 0) select.value = '';
  }

  // -- lists that grow on demand

  const limitOf = (key) => printing ? 500 : limits[key] || CHUNK;

  // Puts the first rows of a list there, and a button for more; shows more by itself near the end.
  function grow(list, key, items, make, root) {
    let shown = 0;
    const more = el('li', {class: 'more-row'});
    const button = el('button', {type: 'button', class: 'plain more', 'data-key': 'more-' + key});
    more.append(button);
    const put = (limit) => {
      const added = items.slice(shown, limit).map((item) => make(item));
      shown = Math.min(limit, items.length);
      more.remove();
      list.append(...added);
      if (shown < items.length) { button.textContent = 'Show more (' + (items.length - shown) + ')'; list.append(more); }
      return added;
    };
    const next = () => { limits[key] = shown + CHUNK; return put(limits[key]); };
    button.addEventListener('click', () => { const added = next(); const first = added[0] && added[0].querySelector('button'); if (first) first.focus(); });
    list.growMore = () => shown < items.length && next().length > 0;
    put(limitOf(key));
    if (root && window.matchMedia('(min-width: 720px)').matches && shown < items.length) {
      new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting) && shown < items.length && document.activeElement !== button) next(); }, {root, rootMargin: '300px'}).observe(more);
    }
  }

  // -- the board

  function card(task) {
    const group = groupOf(task), open = waiting.get(task.id) || [], blocked = (dependents.get(task.id) || []).length, below = children.get(task.id) || [];
    const badges = el('span', {class: 'badges'},
      task.priority !== 2 && badge('Priority ' + task.priority, task.priority === 0),
      task.holder && badge(task.holder + (task.held ? ', ' + duration(now() - task.held) : '')),
      !task.holder && task.assignee && badge('for ' + task.assignee),
      readyRole.has(task.id) && badge('ready'),
      open.length > 0 && badge('waits for ' + (open.length === 1 ? open[0] : open.length)),
      blocked > 0 && task.state !== 'CLOSED' && badge('blocks ' + blocked),
      below.length > 0 && badge(below.filter((id) => byTask.get(id).state === 'CLOSED').length + '/' + below.length + ' closed below'),
      task.rejections > 0 && task.state !== 'CLOSED' && badge('sent back ' + (task.rejections === 1 ? 'once' : task.rejections + ' times'), task.rejections > 2),
      ...(task.labels || []).slice(0, 4).map((label) => badge('#' + label)));
    return el('li', {}, el('button', {type: 'button', class: 'card ' + group, 'data-task': task.id, 'data-key': 'card-' + task.id, tabindex: '-1'},
      el('span', {class: 'head'}, idOf(task), hidden(stateOf(task)), task.state === 'CLOSED' && el('span', {}, GROUPS[group][1] + ' ' + GROUPS[group][0]), el('span', {class: 'age'}, ago(task.since))),
      el('span', {class: 'title text', dir: 'auto'}, task.title),
      badges));
  }

  function drawBoard(place) {
    const columns = new Map(data.states.map((state) => [state, []]));
    for (const task of wished()) columns.get(task.state).push(task);
    const board = el('div', {class: 'columns', 'data-scroll': 'columns', role: 'group', 'aria-label': 'Tasks by state. Arrow keys move between the cards, Enter opens one.'});
    for (const [state, tasks] of columns) {
      if (state === 'CLOSED') tasks.sort((a, b) => b.since - a.since || (a.id < b.id ? 1 : -1));
      else tasks.sort((a, b) => a.priority - b.priority || a.since - b.since || (a.id < b.id ? -1 : 1));
      const total = state === 'CLOSED' && !isFiltered() ? tasks.length + data.left_out : tasks.length;
      const list = el('ul', {'data-scroll': 'column-' + state, 'aria-label': said(state)});
      const group = GROUP_OF[state] || 'landed';
      board.append(el('section', {class: 'column ' + group + (tasks.length ? '' : ' none'), 'aria-labelledby': 'column-' + state, 'data-state': state},
        el('h2', {id: 'column-' + state}, el('span', {class: 'glyph', 'aria-hidden': 'true'}, GROUPS[group][1]), said(state), ' ', el('span', {class: 'total'}, String(total), hidden(total === 1 ? ' task' : ' tasks'))), list));
      grow(list, 'column-' + state, tasks, card, list);
    }
    board.addEventListener('keydown', walkCards);
    board.addEventListener('focusin', (event) => { const one = event.target.closest('.card'); if (one) rove(board, '.card', one); });
    if (!board.querySelector('.card')) board.append(el('p', {class: 'empty'}, isFiltered() ? 'No task is like that.' : 'There is no task yet.'));
    place.append(board);
    rove(board, '.card', board.querySelector('.card'));
  }

  function rove(root, selector, one) {
    for (const other of root.querySelectorAll(selector + '[tabindex="0"]')) other.setAttribute('tabindex', '-1');
    if (one) one.setAttribute('tabindex', '0');
  }

  function walkCards(event) {
    const here = event.target.closest('.card');
    if (!here || event.altKey || event.ctrlKey || event.metaKey) return;
    const list = here.closest('ul'), cards = [...list.querySelectorAll('.card')], at = cards.indexOf(here);
    let next = null;
    if (event.key === 'ArrowDown') {
      if (at === cards.length - 1) list.growMore();
      next = list.querySelectorAll('.card')[at + 1];
    } else if (event.key === 'ArrowUp') next = cards[at - 1];
    else if (event.key === 'Home') next = cards[0];
    else if (event.key === 'End') next = cards[cards.length - 1];
    else if (event.key === 'ArrowRight' || event.key === 'ArrowLeft') {
      const lists = [...here.closest('.columns').querySelectorAll('.column:not(.none) > ul')];
      const beside = lists[lists.indexOf(list) + (event.key === 'ArrowRight' ? 1 : -1)];
      const found = beside ? [...beside.querySelectorAll('.card')] : [];
      const y = here.getBoundingClientRect().top;
      next = found.find((one) => one.getBoundingClientRect().bottom > y) || found[found.length - 1];
    } else return;
    event.preventDefault();
    if (next) { next.focus(); next.scrollIntoView({block: 'nearest', inline: 'nearest'}); }
  }

  // -- the graph

  const showsList = () => asList === null ? window.matchMedia('(max-width: 719px)').matches : asList;

  function drawGraph(place) {
    const list = showsList();
    const switched = (value) => () => { asList = value; draw(); place.querySelector('.choice [aria-pressed="true"]').focus(); };
    const bar = el('div', {class: 'bar'},
      el('div', {class: 'choice', role: 'group', 'aria-label': 'How the graph is shown'},
        el('button', {type: 'button', 'aria-pressed': String(!list), 'data-key': 'as-picture', onclick: switched(false)}, 'Picture'),
        el('button', {type: 'button', 'aria-pressed': String(list), 'data-key': 'as-list', onclick: switched(true)}, 'List')));
    place.append(bar);
    const shown = data.graph.shown.filter((id) => byTask.has(id));
    if (!shown.length) { place.append(el('p', {class: 'empty'}, 'No task is open.')); return; }
    if (list) { bar.append(el('span', {class: 'hint'}, 'Open tasks and what they need, below the tasks they belong to.')); drawOutline(place, shown); } else drawPicture(place, bar);
  }

  function drawOutline(place, shown) {
    const within = new Set(shown), wanted = wish(), lines = [], seen = new Set();
    const visit = (start) => {
      const stack = [[start, 0]];
      while (stack.length) {
        const [id, depth] = stack.pop();
        if (seen.has(id)) continue;
        seen.add(id);
        lines.push([byTask.get(id), depth]);
        for (const child of (children.get(id) || []).slice().reverse()) if (within.has(child)) stack.push([child, depth + 1]);
      }
    };
    for (const id of shown) if (!within.has(byTask.get(id).parent)) visit(id);
    for (const id of shown) visit(id);
    const items = isFiltered() ? lines.filter(([task]) => isWished(task, wanted)) : lines;
    const outline = el('ul', {class: 'outline panel', 'aria-label': 'Tasks'});
    grow(outline, 'outline', items, ([task, depth]) => {
      const line = el('li', {class: 'line'}, stateBadge(task), taskLink(task, 'line-', idOf(task), ' ', title(task)),
        el('span', {class: 'after'}, [
          task.parent && 'below ' + task.parent,
          task.needs && 'needs ' + task.needs.join(', '),
          task.holder && 'with ' + task.holder,
          duration(now() - task.since),
        ].filter(Boolean).join(' \u00B7 ')));
      line.style.setProperty('--depth', Math.min(depth, 8));
      return line;
    });
    place.append(el('div', {class: 'page'}, items.length ? outline : el('p', {class: 'empty'}, 'No task of the graph is like that.')));
  }

  function wide(text, room) {
    let used = 0, kept = '';
    for (const one of text) {
      used += one.codePointAt(0) > 0x10FF ? 2 : 1;
      if (used > room) return kept + '\u2026';
      kept += one;
    }
    return text;
  }

  function drawPicture(place, bar) {
    const {width, height, box: [BOX_WIDTH, BOX_HEIGHT]} = data.graph, wanted = wish(), filtered = isFiltered();
    const spots = new Map(data.graph.boxes.map(([id, x, y]) => [id, [x, y]]));
    const order = data.graph.boxes.map(([id]) => id).sort((a, b) => spots.get(a)[0] - spots.get(b)[0] || spots.get(a)[1] - spots.get(b)[1]);
    const before = new Map(), after = new Map();
    for (const [, from, to] of data.graph.lines) {
      after.set(from, [...(after.get(from) || []), to]);
      before.set(to, [...(before.get(to) || []), from]);
    }
    const hits = new Set(order.filter((id) => isWished(byTask.get(id), wanted)));
    if (!spots.has(chosen)) chosen = order.find((id) => hits.has(id)) || order[0];
    const full = [width + 2 * MARGIN, height + 2 * MARGIN];
    const picture = svgEl('svg', {viewBox: [-MARGIN, -MARGIN, ...full].join(' '), role: 'group', 'aria-label': 'The graph of ' + plural(order.length, 'task') + '. Arrow keys follow the arrows, Enter opens a task.'});
    const defs = svgEl('defs', {}), marker = svgEl('marker', {id: 'tip', viewBox: '0 0 8 8', refX: 7, refY: 4, markerUnits: 'userSpaceOnUse', markerWidth: 9, markerHeight: 9, orient: 'auto-start-reverse'});
    marker.append(svgEl('path', {d: 'M0 0 8 4 0 8z', class: 'tip'}));
    defs.append(marker);
    const edges = svgEl('g', {'aria-hidden': 'true'}), boxes = svgEl('g', {});
    picture.append(defs, edges, boxes);
    const canvas = el('div', {class: 'canvas', 'data-scroll': 'canvas', tabindex: '-1'}, picture);
    let zoom = drawing ? drawing.zoom : null;
    const scale = (value) => {
      const kept = zoom, middle = [canvas.scrollLeft + canvas.clientWidth / 2, canvas.scrollTop + canvas.clientHeight / 2];
      zoom = Math.min(Math.max(value, 0.05), 2);
      picture.setAttribute('width', Math.round(full[0] * zoom));
      picture.setAttribute('height', Math.round(full[1] * zoom));
      if (kept) canvas.scrollTo(middle[0] * zoom / kept - canvas.clientWidth / 2, middle[1] * zoom / kept - canvas.clientHeight / 2);
      drawing = {zoom};
      percent.textContent = Math.round(zoom * 100) + ' %';
      put();
    };
    const fit = () => Math.min(1, canvas.clientWidth / full[0], canvas.clientHeight / full[1]);
    const percent = el('span', {class: 'muted', 'aria-live': 'off'});
    const tool = (text, name, key, click) => el('button', {type: 'button', class: 'plain', 'aria-label': name, 'data-key': key, onclick: click}, text);
    bar.append(tool('\u2212', 'Smaller', 'smaller', () => scale(zoom / 1.25)), tool('+', 'Larger', 'larger', () => scale(zoom * 1.25)),
      tool('Fit', 'Fit all of it', 'fit', () => scale(fit())), tool('1:1', 'Natural size', 'natural', () => scale(1)), percent,
      el('span', {class: 'space'}), legend(true));
    const near = () => new Set([chosen, ...(before.get(chosen) || []), ...(after.get(chosen) || [])]);

    function put() {
      const all = printing || order.length <= DRAWN_AT_ONCE;
      const room = 250;
      const left = canvas.scrollLeft / zoom - room - MARGIN, top = canvas.scrollTop / zoom - room - MARGIN;
      const right = left + canvas.clientWidth / zoom + 2 * room, bottom = top + canvas.clientHeight / zoom + 2 * room;
      const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.task : null;
      const beside = near();
      const seen = (id) => { const [x, y] = spots.get(id); return all || (x + BOX_WIDTH > left && x < right && y + BOX_HEIGHT > top && y < bottom); };
      // What the eye cannot tell apart any more is only a mark.
      const plain = zoom < 0.3 && !all;
      const kept = new Map([...boxes.children].map((one) => [one.dataset.task, one]));
      for (const id of order) {
        const has = kept.get(id);
        if (seen(id) || id === chosen || id === focused) {
          if (!has || has.dataset.plain !== String(plain)) { const made = box(id, plain); if (has) { has.replaceWith(made); if (id === focused) made.focus({preventScroll: true}); } else boxes.append(made); }
        } else if (has) has.remove();
      }
      for (const one of boxes.children) {
        const id = one.dataset.task;
        one.classList.toggle('near', beside.has(id) && canvas.contains(document.activeElement));
        one.classList.toggle('faint', filtered && !hits.has(id));
        one.setAttribute('tabindex', id === chosen ? '0' : '-1');
      }
      const drawn = [];
      for (const [kind, from, to, ...points] of data.graph.lines) {
        let low = Infinity, high = -Infinity;
        for (let at = 1; at < points.length; at += 2) { low = Math.min(low, points[at]); high = Math.max(high, points[at]); }
        const first = Math.min(points[0], points[points.length - 2]), last = Math.max(points[0], points[points.length - 2]);
        if (!all && (last < left || first > right || high < top || low > bottom)) continue;
        const close = (from === chosen || to === chosen) && canvas.contains(document.activeElement);
        const line = svgEl('path', {d: curve(points), class: 'edge ' + (kind === 'depends_on' ? 'needs' : kind === 'parent' ? 'parent' : 'later') + (close ? ' near' : '') + (filtered && !hits.has(from) && !hits.has(to) ? ' faint' : '')});
        if (kind !== 'parent') line.setAttribute('marker-end', 'url(#tip)');
        drawn.push(line);
      }
      edges.replaceChildren(...drawn);
    }

    function box(id, plain) {
      const task = byTask.get(id), [x, y] = spots.get(id);
      const words = [id, stateOf(task), task.title, task.needs && 'needs ' + task.needs.join(', '), task.holder && 'with ' + task.holder].filter(Boolean).join(', ');
      const made = svgEl('g', {class: 'box ' + groupOf(task) + (plain ? ' plain' : ''), transform: 'translate(' + x + ' ' + y + ')', role: 'button', tabindex: '-1', 'data-task': id, 'data-key': 'box-' + id, 'data-plain': String(plain), 'aria-label': words});
      made.append(svgEl('title', {}, id + ' ' + task.title), svgEl('rect', {width: BOX_WIDTH, height: BOX_HEIGHT, rx: 6}), svgEl('path', {class: 'mark', d: 'M4 7v' + (BOX_HEIGHT - 14)}));
      if (!plain) made.append(svgEl('text', {x: 14, y: 18, class: 'head'}, id + ' ' + GROUPS[groupOf(task)][1] + ' ' + stateOf(task)), svgEl('text', {x: 14, y: 34}, wide(task.title, 29)));
      return made;
    }

    function go(id) {
      if (!id || !spots.has(id)) return;
      chosen = id;
      const [x, y] = spots.get(id);
      const edge = 40, place = [(x + MARGIN) * zoom, (y + MARGIN) * zoom], size = [BOX_WIDTH * zoom, BOX_HEIGHT * zoom];
      if (place[0] < canvas.scrollLeft + edge || place[0] + size[0] > canvas.scrollLeft + canvas.clientWidth - edge) canvas.scrollLeft = place[0] - (canvas.clientWidth - size[0]) / 2;
      if (place[1] < canvas.scrollTop + edge || place[1] + size[1] > canvas.scrollTop + canvas.clientHeight - edge) canvas.scrollTop = place[1] - (canvas.clientHeight - size[1]) / 2;
      put();
      const found = [...boxes.children].find((one) => one.dataset.task === id);
      if (found) found.focus({preventScroll: true});
      put();
    }

    canvas.addEventListener('keydown', (event) => {
      const id = event.target.dataset.task;
      if (!id || event.altKey || event.ctrlKey || event.metaKey) return;
      const at = order.indexOf(id);
      const next = {ArrowRight: (after.get(id) || [])[0], ArrowLeft: (before.get(id) || [])[0], ArrowDown: order[at + 1], ArrowUp: order[at - 1], Home: order[0], End: order[order.length - 1]}[event.key];
      if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); openDetail(id, event.target); return; }
      if (event.key.startsWith('Arrow') || event.key === 'Home' || event.key === 'End') { event.preventDefault(); go(next); }
    });
    canvas.addEventListener('focusin', (event) => { if (event.target.dataset.task) { chosen = event.target.dataset.task; put(); } });
    canvas.addEventListener('focusout', () => requestAnimationFrame(() => { if (canvas.isConnected) put(); }));
    let waits = false;
    canvas.addEventListener('scroll', () => {
      if (waits) return;
      waits = true;
      requestAnimationFrame(() => { waits = false; put(); });
    }, {passive: true});
    place.append(canvas);
    // A small graph is seen as a whole, a large one at a size that can be read.
    scale(zoom || (fit() >= 0.6 ? fit() : 0.8));
  }

  function curve(points) {
    let [x, y] = points, path = 'M' + x + ' ' + y;
    for (let at = 2; at < points.length; at += 2) {
      const [right, down] = [points[at], points[at + 1]], middle = Math.floor((x + right) / 2);
      path += down === y ? 'H' + right : 'C' + middle + ' ' + y + ' ' + middle + ' ' + down + ' ' + right + ' ' + down;
      [x, y] = [right, down];
    }
    return path;
  }

  function legend(lines) {
    const found = el('div', {class: 'legend', role: 'group', 'aria-label': 'Legend'});
    for (const [group, [name]] of Object.entries(GROUPS)) found.append(el('span', {class: group}, glyph(group), name));
    if (lines) {
      for (const [kind, name] of [['needs', 'needed by'], ['parent', 'child'], ['later', 'successor']]) {
        const sample = svgEl('svg', {viewBox: '0 0 26 8', 'aria-hidden': 'true'});
        sample.append(svgEl('path', {d: 'M1 4H25', class: 'edge ' + kind}));
        found.append(el('span', {}, sample, name));
      }
    }
    return found;
  }

  // -- the timeline

  function pieces(task) {
    return task.visits.map(([state, at], place) => {
      const next = task.visits[place + 1], name = data.states[state];
      const closed = name === 'CLOSED';
      return {name, at, end: next ? next[1] : closed ? at : now(), group: closed ? groupOf(task) : GROUP_OF[name]};
    });
  }

  function drawTimeline(place) {
    const tasks = wished().filter((task) => task.visits.length);
    if (!tasks.length) { place.append(el('p', {class: 'empty'}, isFiltered() ? 'No task is like that.' : 'Nothing has happened yet.')); return; }
    const end = now();
    const latest = (task) => task.visits[task.visits.length - 1][1];
    let start = Math.min(...tasks.slice(0, 20000).map((task) => task.visits[0][1]));
    if (range === null) {
      // The shortest range in which most of what moved last is seen from its beginning.
      const begun = tasks.slice().sort((a, b) => latest(b) - latest(a)).slice(0, CHUNK).map((task) => end - task.visits[0][1]).sort((a, b) => a - b);
      const most = begun[Math.floor(begun.length * 0.6)];
      range = end - start <= 7 * 86400 ? 'all' : (RANGES.slice(1).reverse().find(([, , span]) => span >= most) || RANGES[0])[0];
    }
    const span = RANGES.find(([name]) => name === range)[2];
    if (span) start = end - span;
    const length = Math.max(end - start, 60);
    const rows = tasks.filter((task) => task.state !== 'CLOSED' || latest(task) >= start).sort((a, b) => latest(b) - latest(a) || (a.id < b.id ? 1 : -1));
    const pick = el('select', {'data-key': 'range', 'aria-label': 'Range of time', onchange: (event) => { range = event.target.value; draw(); byId('view').querySelector('select').focus(); }},
      ...RANGES.map(([name, text]) => el('option', {value: name, selected: name === range}, text)));
    place.append(el('div', {class: 'bar'}, pick, el('span', {class: 'hint'}, 'Latest movement first; times in UTC.'), el('span', {class: 'space'}), legend(false)));
    const axis = el('div', {class: 'axis', 'aria-hidden': 'true'});
    for (let at = 0; at <= 4; at += 1) {
      const when = stamp(start + length * at / 4);
      axis.append(el('span', {}, length > 3 * 86400 ? when.slice(5, 10) : when.slice(5)));
    }
    if (window.matchMedia('(max-width: 719px)').matches) for (const at of [3, 1]) axis.children[at].remove();
    const lanes = el('ul', {class: 'lanes', 'aria-label': 'Tasks over time'});
    grow(lanes, 'lanes', rows, (task) => {
      const track = el('div', {class: 'track', 'aria-hidden': 'true'}), parts = pieces(task);
      for (const part of parts) {
        const from = Math.max(part.at, start), to = Math.min(part.end, end);
        if (to < start || (part.name === 'CLOSED' && part.at < start)) continue;
        const made = el('span', {class: 'piece ' + part.group, title: said(part.name) + ', ' + duration(part.end - part.at)}, part.name === 'CLOSED' ? GROUPS[part.group][1] : said(part.name));
        // The end of a task is a point in time; it is drawn where it can be seen.
        const share = (to - from) / length * 100, at = (from - start) / length * 100;
        made.style.left = Math.min(at, part.name === 'CLOSED' ? 98 : 99.8) + '%';
        made.style.width = part.name === 'CLOSED' ? '17px' : 'max(2px, calc(' + share + '% - 1px))';
        if (!part.end) continue;
        track.append(made);
      }
      return el('li', {class: 'lane'}, taskLink(task, 'lane-', idOf(task), title(task)),
        hidden(stateOf(task) + '. ' + parts.map((part) => said(part.name) + (part.name === 'CLOSED' ? '' : ' ' + duration(part.end - part.at))).join(', ')), track);
    });
    const events = [];
    for (const task of tasks) task.visits.forEach(([state, at, who], number) => events.push([at, task, number ? data.states[task.visits[number - 1][0]] : null, data.states[state], who]));
    events.sort((a, b) => b[0] - a[0] || (a[1].id < b[1].id ? 1 : -1));
    const feed = el('ol', {class: 'feed'});
    grow(feed, 'feed', events, ([at, task, from, to, who]) => el('li', {},
      el('time', {datetime: iso(at)}, stamp(at)), taskLink(task, 'event-' + at + to, idOf(task)),
      el('span', {class: 'moved'}, (from ? said(from) + ' \u2192 ' : '\u2192 ') + (to === 'CLOSED' ? stateOf(task) : said(to)), el('span', {class: 'muted'}, ' by ', el('span', {class: 'text'}, data.names[who])))));
    place.append(el('div', {class: 'page'},
      el('section', {class: 'panel', 'aria-labelledby': 'lanes-title'}, el('h2', {id: 'lanes-title'}, 'Tasks over time ', el('span', {class: 'total'}, String(rows.length))), axis, lanes),
      el('section', {class: 'panel', 'aria-labelledby': 'feed-title'}, el('h2', {id: 'feed-title'}, 'What happened ', el('span', {class: 'total'}, String(events.length))), feed)));
  }

  // -- the inbox

  function command(text, key) {
    const shown = el('code', {}, text);
    const copy = el('button', {type: 'button', 'aria-label': 'Copy ' + text, 'data-key': key}, 'Copy');
    copy.addEventListener('click', async () => {
      try { await navigator.clipboard.writeText(text); tell('Copied: ' + text); copy.textContent = 'Copied'; } catch { const all = document.createRange(); all.selectNodeContents(shown); const chosenText = getSelection(); chosenText.removeAllRanges(); chosenText.addRange(all); tell('The command is selected.'); }
    });
    return el('div', {class: 'command'}, shown, copy);
  }

  function drawInbox(place) {
    const wanted = wish();
    const within = (id) => byTask.has(id) && isWished(byTask.get(id), wanted);
    const rows = data.inbox.filter((row) => within(row.id)), queue = data.ready.filter(([id]) => within(id));
    const list = el('ol', {});
    grow(list, 'inbox', rows, (row) => {
      const task = byTask.get(row.id);
      return el('li', {class: 'row'},
        el('div', {class: 'what'}, stateBadge(task), taskLink(task, 'waits-', idOf(task), ' ', title(task)), task.priority !== 2 && badge('Priority ' + task.priority, task.priority === 0), row.blocking > 0 && badge('blocks ' + row.blocking)),
        el('p', {class: 'when'}, 'waiting ', ago(row.since)),
        el('p', {class: 'why text', dir: 'auto'}, row.reason),
        command(row.command, 'copy-' + row.id));
    });
    const takes = el('ol', {});
    grow(takes, 'queue', queue, ([id, role]) => {
      const task = byTask.get(id);
      return el('li', {class: 'row'},
        el('div', {class: 'what'}, stateBadge(task), taskLink(task, 'ready-', idOf(task), ' ', title(task)), task.priority !== 2 && badge('Priority ' + task.priority, task.priority === 0), badge(role), task.assignee && badge('for ' + task.assignee)),
        el('p', {class: 'when'}, 'ready ', ago(task.since)));
    });
    const none = (text) => el('p', {class: 'muted'}, isFiltered() ? 'Nothing here is like that.' : text);
    const more = (count) => count > 0 && el('p', {class: 'muted'}, plural(count, 'more row') + ' not on this page.');
    place.append(el('div', {class: 'page'},
      el('section', {class: 'panel', 'aria-labelledby': 'inbox-title'}, el('h2', {id: 'inbox-title'}, 'Waiting for the manager ', el('span', {class: 'total'}, String(rows.length + (isFiltered() ? 0 : data.inbox_left_out)))), rows.length ? list : none('Nothing waits for a decision.'), more(data.inbox_left_out)),
      el('section', {class: 'panel', 'aria-labelledby': 'queue-title'}, el('h2', {id: 'queue-title'}, 'Ready to take, in this order ', el('span', {class: 'total'}, String(queue.length + (isFiltered() ? 0 : data.ready_left_out)))), queue.length ? takes : none('Nothing is ready.'), more(data.ready_left_out))));
  }

  // -- the numbers

  const percentOf = (share) => share === null || share === undefined ? '\u2013' : Math.round(share * 100) + ' %';
  const money = (amount) => '$' + amount.toFixed(2);
  const short = (count) => count >= 1e6 ? (count / 1e6).toFixed(1) + ' M' : count >= 1e4 ? Math.round(count / 1e3) + ' k' : String(count);

  function table(name, heads, rows, empty) {
    if (!rows.length) return el('section', {class: 'panel', 'aria-label': name}, el('h2', {}, name), el('p', {class: 'muted'}, empty));
    const body = el('tbody');
    for (const [first, ...cells] of rows) body.append(el('tr', {}, el('th', {scope: 'row'}, el('span', {class: 'text'}, first)), ...cells.map((cell) => cell instanceof Node ? cell : el('td', {}, String(cell)))));
    return el('section', {class: 'panel', 'aria-label': name}, el('div', {class: 'scroll', tabindex: '0', role: 'group', 'aria-label': name},
      el('table', {}, el('caption', {}, name), el('thead', {}, el('tr', {}, ...heads.map((head) => head ? el('th', {scope: 'col'}, head) : el('td', {'aria-hidden': 'true'})))), body)));
  }

  function bars(group, ...values) {
    const cell = el('td', {class: 'bars ' + group, 'aria-hidden': 'true'});
    for (const [share, name] of values) {
      if (!share) continue;
      const one = el('i', {class: name || null});
      one.style.width = share * 100 + '%';
      cell.append(one);
    }
    return cell;
  }

  function drawNumbers(place) {
    const found = data.numbers, standing = found.in_progress;
    const first = found.reviews.reduce(([a, b], [, row]) => [a + row.first_accepted, b + row.first], [0, 0]);
    const rejected = found.reviews.reduce((sum, [, row]) => sum + row.rejected, 0);
    const tiles = el('dl', {class: 'tiles'});
    for (const [name, value] of [
      ['open', standing.open], ['started', standing.started], ['claimed', standing.claimed], ['wait for the manager', data.inbox.length + data.inbox_left_out],
      ['landed', found.done.landed], ['aborted', found.done.aborted], ['median from new to landed', found.lead.times ? duration(found.lead.median_seconds) : '\u2013'],
      ['passed the first review', first[1] ? percentOf(first[0] / first[1]) : '\u2013'], ['sent back', rejected], ['spent', money(found.spent.cost)],
    ]) tiles.append(el('div', {class: 'tile'}, el('dt', {}, name), el('dd', {}, String(value))));
    const longest = Math.max(1, ...found.stages.map(([, row]) => row.median_seconds));
    const stages = found.stages.map(([state, row]) => [said(state), row.times, duration(row.median_seconds), duration(row.p90_seconds), duration(row.max_seconds), bars(GROUP_OF[state] || 'landed', [row.median_seconds / longest])]);
    const most = Math.max(1, ...found.weeks.map(([, row]) => Math.max(row.created, row.landed)));
    const weeks = found.weeks.slice().reverse().map(([day, row]) => [day, row.created, row.landed, row.aborted, bars('gone', [row.landed / most, 'landed'], [row.created / most, 'gone'])]);
    const reviews = found.reviews.filter(([, row]) => row.accepted + row.rejected).map(([state, row]) => [said(state), row.accepted, row.rejected, percentOf(found.first_pass[state])]);
    if (found.checks.accepted + found.checks.rejected) reviews.push(['Checks', found.checks.accepted, found.checks.rejected, percentOf(found.checks.first ? found.checks.first_accepted / found.checks.first : null)]);
    const spent = (rows, name) => rows.map(([who, row]) => [name(who), row.claims, duration(row.seconds), money(row.cost), short(row.tokens)]);
    const heads = (name) => [name, 'Claims', 'Time', 'Cost', 'Tokens'];
    const here = standing.states.map(([state, row]) => [said(state), row.tasks, duration(row.oldest_seconds)]);
    place.append(el('div', {class: 'page'}, el('h2', {class: 'hidden'}, 'Numbers about all tasks'), tiles,
      table('Time in each state', ['State', 'Times', 'Median', '90 %', 'Longest', ''], stages, 'No task has moved yet.'),
      el('div', {class: 'pairs'},
        table('By week', ['Week from', 'New', 'Landed', 'Aborted', ''], weeks, 'Nothing has happened yet.'),
        table('Standing now', ['State', 'Tasks', 'Oldest'], here, 'No task is open.'),
        table('Verdicts', ['At', 'Accepted', 'Sent back', 'At first'], reviews, 'Nothing was judged yet.'),
        table('Spent by state', heads('State'), spent(found.spent_by_state, said), 'No claim has ended yet.'),
        table('Spent by whom', heads('Who'), spent(found.spent_by_actor, (who) => who), 'No claim has ended yet.'))));
  }

  // -- one task

  function openDetail(id, from) {
    if (!byTask.has(id)) return;
    const dialog = byId('detail');
    openTask = id;
    fillDetail(dialog);
    if (!dialog.open) { opener = from ? from.dataset.key : null; dialog.showModal(); }
    dialog.scrollTop = 0;
    dialog.querySelector('h2').focus();
  }

  function fillDetail(dialog) {
    const task = byTask.get(openTask);
    if (!task) { dialog.close(); return; }
    const facts = el('dl', {class: 'facts'});
    const fact = (name, ...inside) => inside.some(Boolean) && facts.append(el('dt', {}, name), el('dd', {}, ...inside.filter(Boolean)));
    const many = (ids) => (ids || []).length > 0 && el('ul', {}, ...ids.slice(0, 30).map((one) => el('li', {}, named(one))), ids.length > 30 && el('li', {class: 'muted'}, 'and ' + (ids.length - 30) + ' more'));
    const texts = (found) => found && el('ul', {}, ...found.map((one) => el('li', {class: 'text', dir: 'auto'}, one)));
    const row = data.inbox.find((one) => one.id === task.id);
    fact('Since', stamp(task.since) + ' UTC', el('span', {class: 'muted'}, '(' + duration(now() - task.since) + ')'));
    fact('With', task.holder && el('span', {class: 'text'}, task.holder), task.held && el('span', {class: 'muted'}, 'for ' + duration(now() - task.held)));
    fact('Meant for', task.assignee && el('span', {class: 'text'}, task.assignee));
    fact('Ready for', readyRole.has(task.id) && 'a ' + readyRole.get(task.id));
    fact('Held because', task.reason && el('span', {class: 'text'}, task.reason));
    fact('Proposed by', task.proposed && el('span', {class: 'text'}, task.proposed));
    fact('Priority', String(task.priority));
    fact('Labels', ...(task.labels || []).map((label) => badge('#' + label)));
    fact('Below', task.parent && named(task.parent));
    fact('Needs', many(task.needs));
    fact('Needed by', many(dependents.get(task.id)));
    fact('Children', many(children.get(task.id)));
    fact('Replaces', task.supersedes && named(task.supersedes));
    fact('Follows', task.follows && named(task.follows));
    fact('Look at', texts(task.attention));
    fact('Findings', texts(task.findings));
    fact('Checks', task.checks && el('ul', {}, ...task.checks.map((one) => el('li', {}, el('code', {class: 'text'}, one)))));
    fact('Sent back', task.rejections && plural(task.rejections, 'time'));
    fact('Checks failed', task.failures && plural(task.failures, 'time'));
    fact('Worked on', task.worked && duration(task.worked), task.cost && money(task.cost), task.tokens && short(task.tokens) + ' tokens');
    const visits = el('ol', {class: 'visits'});
    if (task.earlier) visits.append(el('li', {class: 'muted'}, plural(task.earlier, 'earlier state') + ' left out'));
    pieces(task).forEach((part, number) => visits.append(el('li', {}, el('time', {datetime: iso(part.at)}, stamp(part.at)), part.name === 'CLOSED' ? stateOf(task) : said(part.name),
      el('span', {class: 'muted text'}, 'by ' + data.names[task.visits[number][2]] + (part.name === 'CLOSED' ? '' : ', ' + duration(part.end - part.at))))));
    dialog.replaceChildren(el('div', {class: 'sheet'},
      el('header', {}, el('div', {class: 'over'}, idOf(task), stateBadge(task), el('code', {}, task.state)), el('button', {type: 'button', class: 'plain', 'data-key': 'close', onclick: () => dialog.close()}, 'Close'),
        el('h2', {id: 'detail-title', class: 'text', dir: 'auto', tabindex: '-1'}, task.title)),
      row && el('section', {'aria-label': 'What to do'}, el('p', {class: 'muted text'}, row.reason), command(row.command, 'detail-copy')),
      facts,
      task.visits.length > 0 && el('section', {}, el('h3', {}, 'How it got here'), visits),
      command('git tasks show ' + task.id, 'detail-show')));
  }

  // -- the whole page

  const DRAW = {board: drawBoard, graph: drawGraph, timeline: drawTimeline, inbox: drawInbox, numbers: drawNumbers};

  function draw() {
    const place = byId('view');
    const kept = keep();
    place.replaceChildren();
    place.setAttribute('aria-label', VIEWS[view]);
    const fills = view === 'board' || (view === 'graph' && !showsList());
    document.body.toggleAttribute('data-fills', fills && !printing);
    DRAW[view](place);
    restore(kept);
    for (const link of byId('views').children) {
      const name = link.getAttribute('href').slice(1), count = name === 'inbox' ? data.inbox.length + data.inbox_left_out : 0;
      if (name === view) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current');
      link.replaceChildren(VIEWS[name], ...(count ? [el('span', {class: 'count'}, count > 99 ? '99+' : String(count), hidden(' waiting'))] : []));
    }
    byId('as-of').replaceChildren(...(live
      ? [lost ? 'Not connected; trying again. ' : 'Live, ', 'as of ' + stamp(lost ? data.as_of : now()) + ' UTC']
      : ['As of ' + stamp(data.as_of) + ' UTC']), ', ledger ', el('code', {}, data.ledger.slice(0, 10)));
    document.title = (data.inbox.length ? '(' + (data.inbox.length + data.inbox_left_out) + ') ' : '') + 'Tasks \u00B7 ' + VIEWS[view];
    tellFound();
  }

  function keep() {
    const scrolls = new Map([...document.querySelectorAll('[data-scroll]')].map((one) => [one.dataset.scroll, [one.scrollLeft, one.scrollTop]]));
    const at = document.activeElement;
    return {scrolls, page: [scrollX, scrollY], key: at && at.dataset ? at.dataset.key : null};
  }

  function restore({scrolls, page, key}) {
    for (const one of document.querySelectorAll('[data-scroll]')) {
      const known = scrolls.get(one.dataset.scroll);
      if (known) one.scrollTo(...known);
    }
    scrollTo(...page);
    if (!key) return;
    const dialog = byId('detail');
    const found = [...(dialog.open ? dialog : document).querySelectorAll('[data-key]')].find((one) => one.dataset.key === key);
    if (found) found.focus({preventScroll: true});
  }

  const foundWords = () => {
    const count = wished().length;
    return isFiltered() ? count + ' of ' + plural(data.tasks.length, 'task') : plural(data.tasks.length + data.left_out, 'task');
  };

  function tellFound() {
    byId('found').textContent = view === 'numbers' ? 'all tasks' : foundWords();
    byId('clear').hidden = !isFiltered();
  }

  function tell(text) {
    byId('told').textContent = '';
    requestAnimationFrame(() => { byId('told').textContent = text; });
  }

  function notices() {
    const found = [];
    if (data.problem_count) found.push(el('p', {class: 'notice text'}, plural(data.problem_count, 'document') + ' could not be read: ' + data.problems[0] + (data.problem_count > 1 ? ' \u2026' : '')));
    if (data.left_out) found.push(el('p', {class: 'notice plain-notice'}, plural(data.left_out, 'older closed task') + ' not on this page.'));
    byId('notices').replaceChildren(...found);
  }

  // The address names the view and what is shown, so that it can be kept.
  function address() {
    const asked = new URLSearchParams();
    for (const id of ['words', 'group', 'who', 'label']) if (byId(id).value) asked.set(id, byId(id).value);
    const words = asked.toString();
    history.replaceState(null, '', '#' + view + (words ? '?' + words : ''));
  }

  function follow(first) {
    const [name, words] = location.hash.slice(1).split('?');
    if (!VIEWS[name] && !first) return;
    view = VIEWS[name] ? name : 'board';
    if (first || words !== undefined) {
      const asked = new URLSearchParams(words || '');
      for (const id of ['words', 'group', 'who', 'label']) { byId(id).value = asked.get(id) || ''; byId(id).dataset.wanted = asked.get(id) || ''; }
    }
  }

  function changed() {
    limits = {};
    address();
    draw();
    tell(foundWords());
  }

  function colours(value) {
    if (value === 'auto') delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = value;
    byId('theme').value = value;
  }

  function store(value) {
    // Some browsers keep nothing for a page from a file.
    try { if (value === undefined) return localStorage.getItem('gittasks-colours'); localStorage.setItem('gittasks-colours', value); } catch { /* not kept */ }
    return null;
  }

  function begin() {
    take(JSON.parse(byId('data').textContent));
    const known = store();
    colours(['light', 'dark'].includes(known) ? known : 'auto');
    byId('theme').addEventListener('change', (event) => { colours(event.target.value); store(event.target.value); });
    follow(true);
    fillFilters();
    let pause = 0;
    byId('words').addEventListener('input', () => { clearTimeout(pause); pause = setTimeout(changed, data.tasks.length > 500 ? 180 : 60); });
    for (const id of ['group', 'who', 'label']) byId(id).addEventListener('change', () => { byId(id).dataset.wanted = ''; changed(); });
    byId('filters').addEventListener('submit', (event) => event.preventDefault());
    byId('filters').addEventListener('reset', () => { for (const id of ['group', 'who', 'label']) byId(id).dataset.wanted = ''; setTimeout(() => { changed(); byId('words').focus(); }); });
    addEventListener('hashchange', () => { follow(false); fillFilters(); address(); draw(); scrollTo(0, 0); byId('view').focus({preventScroll: true}); tell(VIEWS[view]); });
    byId('skip').addEventListener('click', (event) => { event.preventDefault(); const first = byId('view').querySelector('[tabindex="0"], button'); (first || byId('view')).focus(); });
    document.addEventListener('click', (event) => { const one = event.target.closest('[data-task]'); if (one) openDetail(one.dataset.task, one); });
    const dialog = byId('detail');
    dialog.addEventListener('close', () => { openTask = null; restore({scrolls: new Map(), page: [scrollX, scrollY], key: opener}); });
    dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
    addEventListener('beforeprint', () => { printing = true; draw(); });
    addEventListener('afterprint', () => { printing = false; draw(); });
    let narrow = innerWidth < 720;
    addEventListener('resize', () => { if (innerWidth < 720 !== narrow) { narrow = !narrow; draw(); } });
    notices();
    draw();
    if (live) { setTimeout(poll, POLL); setInterval(() => { if (!document.hidden && !document.activeElement.closest('select')) draw(); }, 60000); }
  }

  // -- live

  let tag = document.documentElement.dataset.tag || '';

  async function poll() {
    try {
      const answer = await fetch('data' + location.search, {headers: tag ? {'If-None-Match': tag} : {}, cache: 'no-store', credentials: 'omit', redirect: 'error'});
      if (answer.status === 200) {
        tag = answer.headers.get('ETag') || '';
        renew(await answer.json());
      } else if (answer.status !== 304) throw new Error(String(answer.status));
      if (lost) { lost = false; draw(); tell('Connected again.'); }
    } catch {
      if (!lost) { lost = true; draw(); tell('Not connected; trying again.'); }
    }
    setTimeout(poll, document.hidden ? 4 * POLL : POLL);
  }

  function renew(found) {
    const before = byTask;
    take(found);
    const moved = data.tasks.filter((task) => { const known = before.get(task.id); return !known || known.state !== task.state || known.since !== task.since || known.holder !== task.holder; });
    fillFilters();
    notices();
    draw();
    const dialog = byId('detail');
    if (dialog.open) { const kept = keep(), at = dialog.scrollTop; fillDetail(dialog); restore(kept); dialog.scrollTop = at; }
    tell(moved.length === 1 ? moved[0].id + ' is now ' + stateOf(moved[0]) : moved.length ? plural(moved.length, 'task') + ' changed' : 'Updated');
  }

  begin();
})();
