// Command weir is a log router: it listens on sockets, runs every message
// through WebAssembly modules and commits what is left to SQL.
package main

import "os"

func main() { os.Exit(execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
