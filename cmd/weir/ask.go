package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router/admin"
)

// adminFlag is how a command finds the weir that it asks: --admin, or the admin: section of the configuration.
type adminFlag struct{ address *string }

func addAdminFlag(cmd *cobra.Command) adminFlag {
	addConfigFlag(cmd)
	return adminFlag{cmd.Flags().String("admin", "", "ask the weir at this `address`, 127.0.0.1:9600 or unix:///run/weir/admin.sock (default: as configured)")}
}

// find returns the address. Mistakes of a configuration are no matter as long as its admin: section is understood: the
// weir that runs has read the file before somebody edited it, and with secrets that this shell has not.
func (f adminFlag) find(c *cobra.Command) (*admin.Config, error) {
	if *f.address != "" {
		at := &admin.Config{Listen: *f.address}
		for _, p := range at.Check() {
			return nil, usagef("--admin %s: %s (want an address %s)", *f.address, p.What, p.Hint)
		}
		return at, nil
	}
	s, doc := loadSettings(c)
	if doc.Err() != nil && (!doc.Readable() || s.Admin == nil || s.Admin.Check() != nil) {
		err := refuse(c, doc)
		return nil, usageError{fmt.Errorf("%w; --admin ADDRESS asks a weir that runs without reading it", err)}
	}
	if s.Admin == nil {
		return nil, usagef("this configuration has no admin: section, by which weir could be asked; add\n\n    admin: { listen: %s }\n\nand restart weir, or name the address of another one with --admin", admin.DefaultListen)
	}
	return s.Admin, nil
}

// ask asks a running weir and decodes its answer into into. codes are those that are answers.
func ask(ctx context.Context, at *admin.Config, method, path string, patience time.Duration, into any, codes ...int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return at.Dial(ctx) },
	}}
	r, err := http.NewRequestWithContext(ctx, method, "http://weir"+path, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return unreached(at, err, patience)
	}
	defer answer.Body.Close()
	switch {
	case slices.Contains(codes, answer.StatusCode):
	case answer.StatusCode == http.StatusNotFound:
		return fmt.Errorf("ask weir at %s: it knows no %s: it is an older version, or something else", at.Address(), path)
	default:
		return fmt.Errorf("ask weir at %s: it answered %s", at.Address(), answer.Status)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, 64<<20)).Decode(into); err != nil {
		return fmt.Errorf("read the answer of %s: %w", at.Address(), silent(err, patience))
	}
	return nil
}

// unreached says why nobody answered, and what to look at.
func unreached(at *admin.Config, err error, patience time.Duration) error {
	cause := err
	for e := errors.Unwrap(err); e != nil; e = errors.Unwrap(e) {
		cause = e // the last one is the system's
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("no weir answers at %s: %w: is it running, and with this configuration?", at.Address(), cause)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("ask weir at %s: %w: ask as its user, or as root", at.Address(), cause)
	}
	return fmt.Errorf("ask weir at %s: %w", at.Address(), silent(err, patience))
}

// silent puts words to a time that has run out.
func silent(err error, patience time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer in %v: it hangs, or its machine does", patience)
	}
	return err
}
