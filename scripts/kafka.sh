#!/usr/bin/env bash
# A real Kafka broker of one node, in a folder of its own: scripts/kafka.sh FOLDER PORT; kill "$(cat FOLDER/pid)" stops it.
# Started again in the same folder it goes on with its data. Its jars (54 MB) come by Maven, once, into the user's cache.
set -euo pipefail
readonly VERSION=4.4.0
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mkdir -p "$1" && cd "$1" && pwd) port=$2
jars=${WINDOWPANE_KAFKA_JARS:-${XDG_CACHE_HOME:-$HOME/.cache}/windowpane/kafka-$VERSION}

bash "$here/jars.sh" "$jars" "org.apache.kafka:kafka_2.13:$VERSION"
java="$("$here/java.sh")/bin/java"
cd "$folder"
cat >server.properties <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 1))
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
log.dirs=$folder/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
PROPERTIES
[ -d data ] || "$java" -cp "$jars/*" kafka.tools.StorageTool format -t windowpane-tests-00000 -c server.properties >format.log 2>&1
nohup "$java" -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$jars/*" kafka.Kafka server.properties >broker.log 2>&1 &
echo $! >pid
for _ in $(seq 300); do
    (echo >"/dev/tcp/127.0.0.1/$port") 2>/dev/null && exit 0
    kill -0 "$(cat pid)" 2>/dev/null || break
    sleep 0.2
done
echo "Kafka did not answer on port $port; see $folder/broker.log" >&2
exit 1
