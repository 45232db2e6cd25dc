# Starts application.rb, in the place of this shell, in one of the ways that a method JIT can put code:
#
#   sh serve.sh WAY RUBY SHIM METHODS PORT FIGURES
#
# interpreter: no JIT. single: Ruby's MJIT as it is, which compacts all methods into one library. own: the shim has the compiler
# refuse that, so every method stays in a library of its own. arena: the shim loads MJIT's objects into the code arena.
way=$1 ruby=$2 shim=$3
shift 3
here=$(dirname "$0")
set -- "$here/application.rb" "$way" "$@"
# So that the methods are those of the application and not of RubyGems.
jit="--mjit --mjit-min-calls=20 --mjit-verbose=1"
case $way in
interpreter) exec "$ruby" --disable=gems "$@" ;;
single) exec "$ruby" --disable=gems $jit "$@" ;;
own | arena)
    # The loader splits LD_PRELOAD at spaces, so the library is named from its own folder; Ruby goes back from there.
    start=$(pwd) && cd "$(dirname "$shim")" &&
        exec env LD_PRELOAD="./$(basename "$shim")" MASU_MJIT="$way" "$ruby" -C "$start" --disable=gems $jit "$@"
    ;;
*) echo "no way: $way" >&2 && exit 2 ;;
esac
