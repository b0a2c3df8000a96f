#!/usr/bin/env bash
# Gets a real OpenSearch from Maven Central and runs it on loopback, for the tests.
#
#   scripts/opensearch.sh check [VERSION]          can this machine run it? (says what is missing)
#   scripts/opensearch.sh fetch [VERSION]          download and unpack it once
#   scripts/opensearch.sh start [VERSION [PORT]]   run it until `stop`; prints its URL
#   scripts/opensearch.sh stop [PORT]
#   scripts/opensearch.sh ml-commons [PORT]        the same as `start ml-commons`; `stop 9237` ends it
#   scripts/opensearch.sh secured [PORT]           the same as `start secured`; `stop 9238` ends it
#   scripts/opensearch.sh rest-tests               fetch OpenSearch's REST tests once; prints the jar's path
#
# Without VERSION it is 3.6.0; without PORT 9219 for 2.19.6, 9237 for ml-commons, 9238 for secured, else 9236, where
# `make test` looks for them first. VERSION secured is OpenSearch 3.4.0 with its security plugin, with HTTPS, and the
# users and roles of scripts/secured; run-PORT/config/node.pem is the certificate to trust. VERSION ml-commons is
# OpenSearch 3.6.0 with ML Commons, whose zip (opensearch-ml 3.6.0.0, on no registry) ML_COMMONS_PLUGIN names as a path
# or a URL; the tests beside one look for it at ML_COMMONS_URL.
# Everything lies in .opensearch/ of the checkout (OPENSEARCH_DIR changes that). OpenSearch refuses to run as root:
# started by root it runs as `nobody`. OpenSearch 3 needs Java 21 or newer, OpenSearch 2 needs Java 11 to 23.
set -euo pipefail

die() { echo "opensearch.sh: $*" >&2; exit 1; }
as_root() { [ "$(id -u)" = 0 ]; }

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
base=${OPENSEARCH_DIR:-$checkout/.opensearch}
[ ! -e "${ML_COMMONS_PLUGIN:-}" ] || ML_COMMONS_PLUGIN=$(readlink -f "$ML_COMMONS_PLUGIN")

as_server_user() {  # becomes a command, as the user that the server has: call it in a subshell
    if as_root; then exec setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups "$@"; else exec "$@"; fi
}

give_to_server_user() { if as_root; then chown -R "nobody:$(id -g nobody)" "$@"; fi; }

java_major() {  # 17 for a Java home of "17.0.15"; nothing if it is none
    [ -x "$1/bin/java" ] || return 0
    if [ -r "$1/release" ]; then sed -n 's/^JAVA_VERSION="\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' "$1/release"
    else "$1/bin/java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p'; fi
}

find_java() {  # the Java home that fits the version; $1 is VERSION (ml-commons as 3.6.0)
    local least=21 most=999 home major on_path found=
    case $1 in 1.* | 2.*) least=11 most=23 ;; esac
    on_path=$(readlink -f "$(command -v java || true)" || true)
    for home in "${JAVA21_HOME:-}" "${JAVA17_HOME:-}" "${JAVA_HOME:-}" "${on_path%/bin/java}" \
        /usr/lib/jvm/* /Library/Java/JavaVirtualMachines/*/Contents/Home; do
        [ -n "$home" ] && [ -d "$home" ] || continue
        major=$(java_major "$home")
        found="$found${major:+ $major}"
        if [ -n "$major" ] && [ "$major" -ge "$least" ] && [ "$major" -le "$most" ]; then echo "$home"; return; fi
    done
    found=$(tr ' ' '\n' <<<"$found" | sort -nu | xargs)
    [ "$most" = 999 ] && die "OpenSearch $1 needs Java 21 or newer; found: ${found:-none} (set JAVA21_HOME)"
    die "OpenSearch $1 needs Java 11 to 23; found: ${found:-none} (set JAVA17_HOME)"
}

check() {
    find_java "$1" >/dev/null
    if [ "$1" = ml-commons ]; then
        [ -n "${ML_COMMONS_PLUGIN:-}" ] || die "ML_COMMONS_PLUGIN is not set: the plugin's zip, a path or a URL"
    fi
    [ "$1" != secured ] || command -v openssl >/dev/null || die "openssl is needed to make a certificate"
    [ -d "$base/opensearch-$1" ] || command -v mvn >/dev/null || die "Maven (mvn) is needed to get OpenSearch $1"
    if as_root; then
        command -v setpriv >/dev/null || die "started by root it needs setpriv, as OpenSearch refuses to run as root"
        mkdir -p "$base"
        (as_server_user test -x "$base") || die "user nobody cannot enter $base; set OPENSEARCH_DIR to a folder it can"
    fi
}

fetch() {
    local home=$base/opensearch-$1
    check "$1"
    [ ! -d "$home" ] || return 0
    case $1 in ml-commons | secured) fetch 3.6.0 ;; esac
    mkdir -p "$base/zips"
    fresh=$(mktemp -d "$base/unpack.XXXXXX")
    trap 'rm -rf "$fresh"' EXIT
    case $1 in
        ml-commons) make_ml_commons "$fresh" ;;
        secured) make_secured "$fresh" ;;
        *) unpack "$1" "$fresh" ;;
    esac
    give_to_server_user "$fresh/home"
    [ -d "$home" ] || mv "$fresh/home" "$home"  # another start may have been quicker
    rm -rf "$fresh"
}

download() {  # FILE ARTIFACT: from Maven Central, as a file in zips/
    [ ! -f "$base/zips/$1" ] || return 0
    echo "Getting $1 (once) ..." >&2
    mvn -q -B dependency:copy -DoutputDirectory="$base/zips" -Dartifact="$2" >&2 ||
        die "Maven could not get $2; is its central repository within reach?"
}

unpack() {  # VERSION FOLDER: OpenSearch as FOLDER/home
    download "opensearch-$1.zip" "org.opensearch.distribution.integ-test-zip:opensearch:$1:zip"
    python3 -m zipfile -e "$base/zips/opensearch-$1.zip" "$2"
    mv "$2/opensearch-$1" "$2/home"
    chmod 755 "$2"/home/bin/*
    mkdir -p "$2"/home/{logs,plugins}
}

install_plugins() {  # HOME ZIP...: each a URL
    OPENSEARCH_JAVA_HOME=$(find_java 3) "$1/bin/opensearch-plugin" install --batch --silent "${@:2}" >&2 ||
        die "these plugins cannot be installed: ${*:2}"
}

make_ml_commons() {  # OpenSearch 3.6.0 with the plugin of ML_COMMONS_PLUGIN and the one that it needs, as $1/home
    local plugin=$ML_COMMONS_PLUGIN scheduler=opensearch-job-scheduler-3.6.0.0.zip
    case $plugin in *://*) ;; *) plugin=file://$(readlink -f "$plugin") ;; esac
    download $scheduler org.opensearch.plugin:opensearch-job-scheduler:3.6.0.0:zip
    cp -r "$base/opensearch-3.6.0" "$1/home"
    install_plugins "$1/home" "file://$base/zips/$scheduler" "$plugin"
    cat >>"$1/home/config/opensearch.yml" <<'YML'
plugins.ml_commons.only_run_on_ml_node: false
plugins.ml_commons.native_memory_threshold: 100
plugins.ml_commons.jvm_heap_memory_threshold: 100
plugins.ml_commons.connector.private_ip_enabled: true
plugins.ml_commons.trusted_connector_endpoints_regex: ["^http://127\\.0\\.0\\.1:.*$"]
YML
}

make_secured() {  # OpenSearch 3.4.0, the newest whose security plugin is in Maven Central, with that plugin, as $1/home
    local plugin=opensearch-security-3.4.0.0.zip module=$1/home/modules/rule-framework
    download $plugin org.opensearch.plugin:opensearch-security:3.4.0.0:zip
    unpack 3.4.0 "$1"
    cp -r "$base/opensearch-3.6.0/modules/rule-framework" "$module"  # the plugin extends it, and 3.4.0 came without it
    sed -i.bak -E 's/^(version|opensearch\.version)=.*/\1=3.4.0/' "$module/plugin-descriptor.properties"
    rm "$module/plugin-descriptor.properties.bak"
    install_plugins "$1/home" "file://$base/zips/$plugin"
}

secure() {  # CONFIG: the settings, users and roles of scripts/secured, and a certificate for this machine
    local config=$1 ours=$checkout/scripts/secured
    cat "$ours/opensearch.yml" >>"$config/opensearch.yml"
    cp "$ours"/{config,internal_users,roles_mapping}.yml "$config/opensearch-security"
    cat "$ours/roles.yml" >>"$config/opensearch-security/roles.yml"
    openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=node -addext "subjectAltName=IP:127.0.0.1,DNS:localhost" \
        -keyout "$config/node.key" -out "$config/node.pem" 2>/dev/null || die "openssl could not make a certificate"
    chmod 600 "$config/node.key"
}

url_of() { if [ "$1" = secured ]; then echo "https://127.0.0.1:$2"; else echo "http://127.0.0.1:$2"; fi; }  # VERSION PORT

answers() {  # VERSION PORT; a secured one once it knows its users
    local login=()
    [ "$1" != secured ] || login=(--cacert "$base/run-$2/config/node.pem" --user admin:Correct-Horse-1)
    curl -sf -o /dev/null --max-time 2 ${login[@]+"${login[@]}"} "$(url_of "$1" "$2")/_cluster/health"
}

start() {
    local version=$1 port=$2 run=$base/run-$2 java pid
    fetch "$version"
    java=$(find_java "$version")
    if answers "$version" "$port"; then echo "$(url_of "$version" "$port") already answers"; return; fi
    rm -rf "$run" && mkdir -p "$run/data" "$run/logs"
    cp -r "$base/opensearch-$version/config" "$run/config"
    [ "$version" != secured ] || secure "$run/config"
    give_to_server_user "$run"
    cd "$base/opensearch-$version"
    export OPENSEARCH_JAVA_HOME=$java OPENSEARCH_PATH_CONF=$run/config
    export OPENSEARCH_JAVA_OPTS=${OPENSEARCH_JAVA_OPTS:--Xms512m -Xmx512m}
    unset JAVA_TOOL_OPTIONS
    # The pid is the server's own, as every step from here on becomes the next one.
    as_server_user bin/opensearch -Ediscovery.type=single-node -Enetwork.host=127.0.0.1 -Ehttp.port="$port" \
        -Etransport.port=0 -Epath.data="$run/data" -Epath.logs="$run/logs" -Epath.repo="$run/snapshots" \
        -Ecluster.routing.allocation.disk.threshold_enabled=false </dev/null >"$run/out" 2>&1 &
    pid=$!
    echo "Starting OpenSearch $version (half a minute) ..." >&2
    echo "$pid" >"$run/pid"
    for _ in $(seq 360); do
        if answers "$version" "$port"; then url_of "$version" "$port"; return; fi
        kill -0 "$pid" 2>/dev/null || { tail -20 "$run/out" >&2; die "OpenSearch $version ended at once, see above"; }
        sleep 0.5
    done
    stop "$port"
    die "OpenSearch $version did not answer within 180 s; see $run/out"
}

stop() {
    local run=$base/run-$1 pid
    [ -f "$run/pid" ] || die "no OpenSearch was started on port $1"
    pid=$(cat "$run/pid")
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -9 "$pid" 2>/dev/null || true
    rm -rf "$run"
}

fetch_rest_tests() {  # 3.1.0 is the newest in Maven Central
    local jar=rest-api-spec-3.1.0.jar
    command -v mvn >/dev/null || die "Maven (mvn) is needed to get OpenSearch's REST tests"
    mkdir -p "$base/zips"
    download $jar org.opensearch:rest-api-spec:3.1.0:jar
    echo "$base/zips/$jar"
}

default_port() { case $1 in 2.*) echo 9219 ;; ml-commons) echo 9237 ;; secured) echo 9238 ;; *) echo 9236 ;; esac; }

version=${2:-3.6.0}
case "${1:-}" in
    check) check "$version" ;;
    fetch) fetch "$version" ;;
    start) start "$version" "${3:-$(default_port "$version")}" ;;
    stop) stop "${2:-$(default_port 3)}" ;;
    ml-commons | secured) start "$1" "${2:-$(default_port "$1")}" ;;
    rest-tests) fetch_rest_tests ;;
    *) sed -n '4,18s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
