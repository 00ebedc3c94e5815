#!/bin/bash
# The controller of a run that many pods share: splits it, lets a Job do the parts of each round, and reduces it.
#
#     controller.sh OPTION...
#
# The options are those of `dedup-job run`. The variable JOBS names the prefix in which each day has a job of its own. If this
# pod is stopped, the next one takes up where it was: the Job of a round has the same name again.
set -euo pipefail

day=$(date --utc --date=yesterday +%F)
job=$JOBS/$day
# How often to look at a Job, in seconds.
look=${LOOK:-10}
# The one place that can be written to, also for kubectl.
export HOME=${SCRATCH:-/scratch}

# field NAME: the first of that name in what `split` printed.
field() { grep -o "\"$1\":[^,}]*" <<< "$state" | head -n 1 | cut -d : -f 2; }

# round NUMBER PARTS: has the parts of a round done.
round() {
    local name=dedup-job-parts-$day-$1 state patch
    if ! kubectl get job "$name" > /dev/null 2>&1; then
        patch="[
            {\"op\": \"replace\", \"path\": \"/spec/completions\", \"value\": $2},
            {\"op\": \"replace\", \"path\": \"/spec/template/spec/containers/0/env/0/value\", \"value\": \"$job\"},
            {\"op\": \"replace\", \"path\": \"/spec/template/spec/containers/0/env/1/value\", \"value\": \"$1\"}
        ]"
        kubectl create job "$name" --from=cronjob/dedup-job-part --dry-run=client -o json \
            | kubectl patch --local -f - --type=json --patch "$patch" -o json \
            | kubectl create -f - >&2
    fi
    while true; do
        state=$(kubectl get job "$name" -o 'jsonpath={.status.conditions[?(@.status=="True")].type}')
        case " $state " in
            *" Complete "*) return ;;
            *" Failed "*) break ;;
        esac
        sleep "$look"
    done
    state=$(kubectl get job "$name" -o 'jsonpath={.status.conditions[?(@.type=="Failed")].message}')
    echo "the job $name failed: $state" >&2
    # For the next try of this pod, whose parts that are done stay done.
    kubectl delete job "$name" >&2
    # A code that the Job is not to be tried again after is not to be tried again here; else 75 asks for it.
    code=$(sed -n 's/.*failed with exit code \([0-9]*\).*/\1/p' <<< "$state")
    exit "${code:-75}"
}

code=0
{ state=$(dedup-job split "$job" "$@" --json 2>&3) || code=$?; } 3> "$HOME/said"
said=$(cat "$HOME/said")
rm "$HOME/said"
echo "$said" >&2
if [ "$code" = 75 ] && number=$(grep -o 'round [0-9]*' <<< "$said" | head -n 1 | cut -d ' ' -f 2); then
    # An earlier pod had begun. If its Job is gone, all parts up to the last that is missing are done again, or are there.
    last=$(grep -o -e '--part [0-9.,]*' <<< "$said" | head -n 1 | grep -o '[0-9]*' | tail -n 1)
    round "$number" "$((last + 1))"
    state=$(dedup-job split "$job" "$@" --json)
elif [ "$code" != 0 ]; then
    exit "$code"
fi
# With the options again, since the settings file has some of them.
until [ "$(field ready)" = true ]; do
    round "$(field round)" "$(field parts)"
    state=$(dedup-job split "$job" "$@" --json)
done
exec dedup-job reduce "$job" --config=/etc/dedup-job/job.toml
