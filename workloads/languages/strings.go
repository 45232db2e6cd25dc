// Names handed to C and back, as a binding of a C library does: every string is copied into memory of malloc.
package main

/*
#include <stdlib.h>
#include <string.h>
static size_t length(const char *name) { return strlen(name); }
*/
import "C"

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"unsafe"
)

func main() {
	names, _ := strconv.Atoi(os.Args[1])
	sums := make([]int, 4)
	var group sync.WaitGroup
	for worker := range sums {
		group.Add(1)
		go func() {
			defer group.Done()
			kept := make([]*C.char, 1000)
			for n := worker; n < names; n += len(sums) {
				name := C.CString(fmt.Sprintf("customer number %d of the list", n))
				sums[worker] += int(C.length(name))
				C.free(unsafe.Pointer(kept[n%1000]))
				kept[n%1000] = name
			}
		}()
	}
	group.Wait()
	fmt.Println(sums[0] + sums[1] + sums[2] + sums[3])
}
