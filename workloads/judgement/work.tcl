# Lists, dictionaries and strings.
set file [open orders.tsv]
set sums [dict create]
for {set i 0} {$i < 60000 && [gets $file line] >= 0} {incr i} {
    lassign [split $line "\t"] number customer city price note
    dict lappend sums $city [expr {$price * [llength $note]}]
    lappend names [string toupper [string range $customer 0 5]]$number
}
set total 0
dict for {city list} $sums { foreach one $list { set total [expr {$total + $one}] } }
puts "[format %.2f $total] [llength [lsort -unique $names]]"
