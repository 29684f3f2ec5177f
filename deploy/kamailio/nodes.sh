#!/bin/sh
# Keeps Kamailio's list of nodes at the addresses of a DNS name, such as a headless Service of Kubernetes.
#
#   nodes.sh NAME PORT LIST [once]
#
# With "once" it ends when the name has addresses and the list has been written, and does not ask Kamailio.
set -eu
name=$1 port=$2 list=$3 once=${4-}
interval_s=${INTERVAL_S-2}
stale=

while :; do
    # Without addresses the list stays: no answer of DNS may take the nodes from the front.
    addresses=$(getent ahostsv4 "$name" | cut -d ' ' -f 1 | sort -u) || addresses=
    if [ -n "$addresses" ]; then
        # One line for each address, which are words here.
        # shellcheck disable=SC2086
        printf "1 sip:%s:$port\n" $addresses >"$list.new"
        if cmp -s "$list.new" "$list"; then
            rm "$list.new"
        else
            mv "$list.new" "$list"
            stale=1
        fi
        [ "$once" = once ] && exit 0
    fi
    # Kamailio refuses to read its list twice within five seconds: the next attempt succeeds.
    if [ -n "$stale" ] && kamcmd dispatcher.reload | grep -q '^Ok'; then
        stale=
    fi
    sleep "$interval_s"
done
