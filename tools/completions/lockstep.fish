# Completion of lockstep for fish. What is offered is said by the completion for bash, which asks the program; it
# is beside this file, or installed.

set -g __lockstep_folder (path resolve (status filename) | path dirname)

function __lockstep_complete
    set -l file $__lockstep_folder/lockstep.bash
    test -r $file; or set file $__lockstep_folder/../../bash-completion/completions/lockstep
    set -l token (commandline -ct) # none, or one
    set -l offered (bash $file (commandline -opc) "$token" 2>/dev/null)
    printf '%s\n' $offered | string match -v -- @files
    contains -- @files $offered; and __fish_complete_path (commandline -ct)
end

complete -c lockstep -f -a '(__lockstep_complete)'
