#!/usr/bin/env bash
# Bring artifacts of Maven, with all that they need, into a folder, once: scripts/jars.sh FOLDER GROUP:ARTIFACT:VERSION...
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$1
shift

[ -d "$folder" ] && exit 0
if ! command -v mvn >/dev/null; then
    # shellcheck source=scripts/packages.sh
    source "$here/packages.sh"
    install_one_of Maven apt-get=maven dnf=maven apk=maven pacman=maven brew=maven
fi
new=$(mktemp -d "${TMPDIR:-/tmp}/jars-XXXXXX")
{
    echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    echo '<groupId>none</groupId><artifactId>jars</artifactId><version>1</version><dependencies>'
    for artifact in "$@"; do
        IFS=: read -r group name version <<<"$artifact"
        echo "<dependency><groupId>$group</groupId><artifactId>$name</artifactId><version>$version</version></dependency>"
    done
    echo '</dependencies></project>'
} >"$new/pom.xml"
mvn -q -B -f "$new/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$new/lib" >&2
mkdir -p "$(dirname "$folder")"
mv -T "$new/lib" "$folder" 2>/dev/null || [ -d "$folder" ] # another one may have been faster
rm -rf "$new"
