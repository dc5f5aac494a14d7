package main

// builtinName stands for the file in messages about the built-in configuration.
const builtinName = "(built-in)"

// builtin is what `weir run` does when there is no file.
const builtin = `# Listens on this machine only and keeps everything below ./weir-data.
state_dir: weir-data
admin: { listen: 127.0.0.1:9600 }
sources:
  local:
    listen:
      - tcp://127.0.0.1:5514
      - udp://127.0.0.1:5514
      - unix://weir-data/weir.sock
filters:
  severity:
    module: stock:severity
    config: { min: debug }    # keeps everything; info drops what is only for debugging
destinations:
  logs:
    sqlite: logs.db
routes:
  main:
    from: [local]
    filters: [severity]
    to: [logs]
dead_letters: { size: 64MiB }
`

// welcome is printed once when the built-in configuration runs.
const welcome = `weir runs its built-in configuration (weir config show prints it; save that as weir.yaml to change it).

It listens on  tcp://127.0.0.1:5514  udp://127.0.0.1:5514  unix://weir-data/weir.sock
Rows go to     weir-data/logs.db, table logs
What it does   weir status, and http://127.0.0.1:9600/metrics and /readyz

Send a line:   echo "<13>me: hello weir" | weir loggen --tcp 127.0.0.1:5514 --file -
               logger -n 127.0.0.1 -P 5514 --tcp "hello weir"
               weir loggen --tcp 127.0.0.1:5514 --number 10
Stop it:       Ctrl-C
See it:        weir logs        weir logs -f goes on with what comes

`
