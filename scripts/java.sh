#!/usr/bin/env bash
# Print the home of a Java that Spark 4 runs on (17 or newer), installing one when there is none.
# JAVA_HOME wins, then java on PATH, then the usual places, oldest sufficient version first: Spark is tested most on those.
set -euo pipefail
readonly MINIMUM=17
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/packages.sh
source "$here/packages.sh"

# probe JAVA: print "VERSION HOME" of a java executable, or nothing if it is too old or does not run.
probe() {
    local settings version home
    settings=$("$1" -XshowSettings:properties -version 2>&1) || return 0
    version=$(sed -n 's/^ *java\.specification\.version = //p' <<<"$settings")
    home=$(sed -n 's/^ *java\.home = //p' <<<"$settings")
    version=${version%%.*}
    [[ $version =~ ^[0-9]+$ ]] && [ "$version" -ge "$MINIMUM" ] && echo "$version $home"
    return 0
}

usual_places() {
    local java
    for java in /usr/lib/jvm/*/bin/java /opt/java/*/bin/java /opt/*jdk*/bin/java \
        /opt/homebrew/opt/openjdk*/bin/java /usr/local/opt/openjdk*/bin/java \
        /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java \
        "$HOME"/.sdkman/candidates/java/*/bin/java "$HOME"/.jdks/*/bin/java; do
        if [ -x "$java" ]; then
            probe "$java"
        fi
    done
}

find_java() {
    local found=""
    if [ -n "${JAVA_HOME:-}" ]; then
        found=$(probe "$JAVA_HOME/bin/java")
        [ -n "$found" ] || echo "note: JAVA_HOME=$JAVA_HOME is not a Java $MINIMUM or newer; looking elsewhere" >&2
    fi
    if [ -z "$found" ] && command -v java >/dev/null; then
        found=$(probe java)
    fi
    if [ -z "$found" ]; then
        found=$(usual_places | sort -n | head -n 1)
    fi
    echo "${found#* }"
}

home=$(find_java)
if [ -z "$home" ]; then
    install_one_of "Java $MINIMUM or newer" \
        apt-get=openjdk-17-jre-headless apt-get=openjdk-21-jre-headless \
        dnf=java-17-openjdk-headless dnf=java-21-openjdk-headless \
        apk=openjdk17-jre-headless apk=openjdk21-jre-headless \
        pacman=jre17-openjdk-headless pacman=jre21-openjdk-headless \
        brew=openjdk@17 brew=openjdk@21
    home=$(find_java)
fi
if [ -z "$home" ]; then
    echo "error: Java was installed but not found; set JAVA_HOME to it and run make again." >&2
    exit 1
fi
echo "$home"
