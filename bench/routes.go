package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// routes asks: what does it cost to select? Five teams have a file each with ten routes, each of which takes the
// messages of one of fifty hosts; beside it is one route that takes everything. The hosts send in turn, over one relay,
// so that each read brings messages for all routes.
func routes(ctx context.Context, l *lab) error {
	for _, into := range []struct{ what, destination string }{
		{"nowhere: what weir itself costs", "{ discard: {} }"},
		{"one SQLite table", "{ sqlite: logs.db }"},
	} {
		fmt.Printf("\n  into %s\n", into.what)
		err := l.compare(ctx, []contender{
			{name: "50 routes", messages: 3_000_000, run: throughRoutes(true, into.destination), atLeast: 0.7},
			{name: "one without match", messages: 3_000_000, run: throughRoutes(false, into.destination), atLeast: 0.7},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

const teams, hostsOfTeam = 5, 10

func throughRoutes(many bool, destination string) func(context.Context, *lab, int) (result, error) {
	return func(ctx context.Context, l *lab, n int) (result, error) {
		dir, err := l.fresh("routes")
		if err != nil {
			return result{}, err
		}
		if err := writeTeams(dir, many, destination); err != nil {
			return result{}, err
		}
		r, err := started(ctx, dir, filepath.Join(dir, "in.sock"), []string{l.weir, "run", "-c", filepath.Join(dir, "conf"), "--log-format", "text"})
		if err != nil {
			return result{}, err
		}
		defer r.stop(syscall.SIGTERM)
		others, cpu, begin := foreign(), r.cpu(), time.Now()
		sender, err := start(dir, l.weir, "loggen", "--unix", r.socket, "--rate", "0", "--number", fmt.Sprint(n), "--file", filepath.Join(dir, "lines"), "--loop")
		if err != nil {
			return result{}, err
		}
		sent, err := sender.sent(ctx)
		if err != nil {
			return result{}, err
		}
		used, peak := r.cpu()-cpu, r.peak()
		if err := r.stop(syscall.SIGTERM); err != nil { // everything is stored, or weir says so
			return result{}, err
		}
		stored, err := ledgerSum(r.log, "stored")
		return result{rows: stored, distinct: stored, sent: sent, seconds: time.Since(begin).Seconds(), cpu: used, peak: peak, foreign: others()}, err
	}
}

// writeTeams writes a directory of configurations into dir, and the lines that are sent.
func writeTeams(dir string, many bool, destination string) error {
	files := map[string]string{"conf/main.yaml": fmt.Sprintf("state_dir: %q\nsources: { in: { listen: [%q] } }\ndestinations: { out: %s }\n",
		filepath.Join(dir, "state"), "unix://"+filepath.Join(dir, "in.sock"), destination)}
	var lines strings.Builder
	for team := range teams {
		var conf strings.Builder
		conf.WriteString("routes:\n")
		for host := range hostsOfTeam {
			name := fmt.Sprintf("team%d-host%d", team, host)
			line := fmt.Sprintf("<14>Nov 30 10:00:00 %s shop[1234]: order of a customer, ", name)
			lines.WriteString(line + strings.Repeat("x", 255-len(line)) + "\n")
			fmt.Fprintf(&conf, "  %s: { from: [in], match: { hostname: %q }, to: [out] }\n", name, name)
		}
		if many {
			files[fmt.Sprintf("conf/team%d.yaml", team)] = conf.String()
		}
	}
	if !many {
		files["conf/routes.yaml"] = "routes: { all: { from: [in], to: [out] } }\n"
	}
	files["lines"] = lines.String()
	if err := os.Mkdir(filepath.Join(dir, "conf"), 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// ledgerSum adds up what the destinations of a router that has ended say of a fate.
func ledgerSum(log, fate string) (sum int, err error) {
	text, err := os.ReadFile(log)
	if err != nil {
		return 0, err
	}
	for _, m := range regexp.MustCompile(`(?m)^ledger destination=.* `+fate+`=(\d+)`).FindAllSubmatch(text, -1) {
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
