# Sourced, not run: install one of several packages with the package manager of this system.

_as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

_can_be_root() {
    [ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }
}

_install_command() {
    case "$1" in
        apt-get) echo "apt-get install -y $2" ;;
        dnf) echo "dnf install -y $2" ;;
        apk) echo "apk add $2" ;;
        pacman) echo "pacman -S --noconfirm $2" ;;
        brew) echo "brew install $2" ;;
    esac
}

_install() {
    local manager=$1 package=$2
    local -a command
    read -r -a command <<<"$(_install_command "$manager" "$package")"
    if [ "$manager" = brew ]; then
        "${command[@]}"
    else
        _as_root "${command[@]}"
    fi
}

# install_one_of WHAT MANAGER=PACKAGE...
# Try the packages of the first manager that this system has, in the order given. All output goes to stderr.
# Fails with the exact command to run when there is no right to install, no manager, or no package that works.
install_one_of() {
    local what=$1 choice manager="" first=""
    shift
    for choice in "$@"; do
        if [ -z "$manager" ] && command -v "${choice%%=*}" >/dev/null; then
            manager=${choice%%=*}
            first=${choice#*=}
        fi
    done
    if [ -z "$manager" ]; then
        echo "error: no known package manager here; install $what by hand and run make again." >&2
        return 1
    fi
    if [ "$manager" != brew ] && ! _can_be_root; then
        echo "error: $what is missing. Run this, then make again:" >&2
        echo "    sudo $(_install_command "$manager" "$first")" >&2
        return 1
    fi
    echo "$what is missing: installing it with $manager" >&2
    [ "$manager" != apt-get ] || _as_root apt-get update -qq >&2 || true
    for choice in "$@"; do
        [ "${choice%%=*}" = "$manager" ] || continue
        if _install "$manager" "${choice#*=}" >&2; then
            return 0
        fi
    done
    echo "error: $manager could not install $what. Try this yourself, then run make again:" >&2
    echo "    $(_install_command "$manager" "$first")" >&2
    return 1
}
