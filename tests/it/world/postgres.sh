# Runs one throw-away PostgreSQL cluster until standard input ends, which happens when the test process is gone, however it went.
# Usage: sh postgres.sh <folder of initdb and pg_ctl> <port> <durability: on|off>; prints "ready <folder>" or "failed" and the log.
set -u
# PIPE too: the process may be gone before it has read that we are ready.
trap '' INT HUP QUIT TERM PIPE
bin=$1
port=$2
durable=$3

# What a killed run left: its watchdog is dead, its server may live.
for old in /tmp/countersign-pg.*; do
    watchdog=$(cat "$old/watchdog" 2>/dev/null) || continue
    if kill -0 "$watchdog" 2>/dev/null; then continue; fi
    "$bin/pg_ctl" -D "$old/data" -m immediate stop >/dev/null 2>&1
    rm -rf "$old"
done

dir=$(mktemp -d /tmp/countersign-pg.XXXXXX) || exit 1
echo $$ >"$dir/watchdog"

# The order of texts differs from byte order, as on most installed servers: nothing may lean on it.
# Durability is off for the tests, which kill Countersign and never this server; the benchmark wants it on.
if "$bin/initdb" -D "$dir/data" -U countersign -A trust --no-sync -E UTF8 --locale=C.UTF-8 \
        --locale-provider=icu --icu-locale=en-US >"$dir/log" 2>&1 &&
    "$bin/pg_ctl" -D "$dir/data" -w -t 60 -l "$dir/log" -o "-c listen_addresses=127.0.0.1 -c port=$port \
        -c unix_socket_directories=$dir -c fsync=$durable -c synchronous_commit=$durable -c full_page_writes=$durable \
        -c max_connections=400 -c shared_buffers=64MB" start >/dev/null 2>&1; then
    echo "ready $dir"
    exec >/dev/null 2>&1
    cat
else
    echo failed
    cat "$dir/log"
fi
"$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null 2>&1
rm -rf "$dir"
