#!/bin/sh
# Publishes the lists of a spec file with several processes on this machine, then joins their reports:
#
#   sh examples/shards.sh examples/lists.yaml 8 reports
#
# Exit code: that of report merge. 0: all was published, 4: a shard has no report, 9: lists failed.
set -u

spec=${1:?Usage: sh shards.sh SPEC [SHARDS] [FOLDER]}
total=${2:-8}
reports=${3:-reports}

mkdir -p "$reports"
# Reports of an earlier run would be joined too.
rm -f "$reports"/shard-*.json

index=1
while [ "$index" -le "$total" ]; do
  manifest-publish publish -f "$spec" --shard "$index/$total" --keep-going \
    --report "$reports/shard-$index.json" 2>"$reports/shard-$index.log" &
  index=$((index + 1))
done
wait

manifest-publish report merge "$reports" >&2
