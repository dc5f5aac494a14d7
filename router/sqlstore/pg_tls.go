package sqlstore

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlog/weir/router/config"
)

// Libpq are settings of the connection that may stand beside `postgres:`, under
// the names that libpq has for them (PostgreSQL manual, "Parameter Key Words").
// What the connection string says as well is a mistake; libpq's environment
// variables count less than both.
type Libpq struct {
	SSLMode        string        `yaml:"sslmode,with=postgres"`        // "": verify-full on another host, else prefer
	SSLRootCert    File          `yaml:"sslrootcert,with=postgres"`    // file of the authorities, or system
	SSLCert        File          `yaml:"sslcert,with=postgres"`        // file of our certificate
	SSLKey         File          `yaml:"sslkey,with=postgres"`         // file of its key
	SSLPassword    config.Secret `yaml:"sslpassword,with=postgres"`    // of that key
	SSLSNI         *bool         `yaml:"sslsni,with=postgres"`         // send the host's name (nil and true)
	SSLNegotiation string        `yaml:"sslnegotiation,with=postgres"` // postgres, or direct (server 17)
	TargetSession  string        `yaml:"target_session_attrs,with=postgres"`
	ConnectTimeout time.Duration `yaml:"connect_timeout,with=postgres"` // of each address; 0: 10 s
}

// A File is the name of a file, relative to the configuration file that names it.
type File string

// UnmarshalConfig makes the name usable from where weir runs.
func (f *File) UnmarshalConfig(v *config.Value) {
	var name string
	if v.Decode(&name) && name != "" && name != systemRoots {
		name = v.Place().Resolve(name)
	}
	*f = File(name)
}

var sslModes = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

// mode is the sslmode that somebody chose, "" when nobody did.
func (l *Libpq) mode(text string) string { return chosen(l.SSLMode, text, "sslmode", "PGSSLMODE") }

// target is the target_session_attrs that somebody chose, "" when nobody did.
func (l *Libpq) target(text string) string {
	return chosen(l.TargetSession, text, "target_session_attrs", "PGTARGETSESSIONATTRS")
}

func (l *Libpq) roots(text string) string {
	return chosen(string(l.SSLRootCert), text, "sslrootcert", "PGSSLROOTCERT")
}

// chosen is a setting from where it counts most: its own key, the connection string, libpq's environment variable.
func chosen(own, text, name, variable string) string {
	if word, ok := said(text, name); own == "" && ok {
		return word
	}
	return cmp.Or(own, os.Getenv(variable))
}

// systemRoots is what libpq calls the operating system's authorities.
const systemRoots = "system"

// words are the settings that are set, by libpq's names.
func (l *Libpq) words() ([][2]string, error) {
	password, err := l.SSLPassword.Reveal()
	if err != nil {
		return nil, fmt.Errorf("sslpassword: %w", err)
	}
	sni := ""
	if l.SSLSNI != nil {
		sni = map[bool]string{true: "1", false: "0"}[*l.SSLSNI]
	}
	timeout := ""
	if l.ConnectTimeout > 0 {
		timeout = strconv.Itoa(int((l.ConnectTimeout + time.Second - 1) / time.Second))
	}
	all := [][2]string{{"sslmode", l.SSLMode}, {"sslrootcert", string(l.SSLRootCert)}, {"sslcert", string(l.SSLCert)}, {"sslkey", string(l.SSLKey)}, {"sslpassword", password},
		{"sslsni", sni}, {"sslnegotiation", l.SSLNegotiation}, {"target_session_attrs", l.TargetSession}, {"connect_timeout", timeout}}
	return slices.DeleteFunc(all, func(w [2]string) bool { return w[1] == "" }), nil
}

// check tells what is wrong beside the connection string text.
func (l *Libpq) check(text string) (bad []config.Problem) {
	add := func(path, hint, format string, args ...any) {
		bad = append(bad, config.Problem{Path: path, What: fmt.Sprintf(format, args...), Hint: hint})
	}
	words, err := l.words()
	if err != nil {
		add("sslpassword", "${file:/run/secrets/key}", "%v", err)
	}
	for _, w := range words {
		if says(text, w[0]) {
			add(w[0], "say it once", "the connection string says %s as well", w[0])
		}
	}
	for _, one := range []struct {
		path, value string
		known       []string
	}{
		{"sslmode", l.SSLMode, sslModes},
		{"sslnegotiation", l.SSLNegotiation, []string{"postgres", "direct"}},
		{"target_session_attrs", l.TargetSession, []string{"read-write", "primary", "any"}},
	} {
		if one.value != "" {
			bad = append(bad, config.OneOf(one.path, one.value, one.known...)...)
		}
	}
	if word, ok := said(text, "sslmode"); ok {
		for _, p := range config.OneOf("postgres", word, sslModes...) {
			add(p.Path, p.Hint, "%s for sslmode", p.What)
		}
	}
	if mode := l.mode(text); l.roots(text) == systemRoots && mode != "" && mode != "verify-full" && l.SSLMode != "disable" {
		path := "postgres"
		if l.SSLMode != "" {
			path = "sslmode"
		} else if l.SSLRootCert != "" {
			path = "sslrootcert"
		}
		add(path, "sslmode: verify-full, or sslrootcert: FILE", "sslmode %s is too weak for sslrootcert: system: anybody can get a certificate of some authority of the system's", mode)
	}
	if l.ConnectTimeout < 0 || l.ConnectTimeout > 0 && l.ConnectTimeout < time.Second {
		add("connect_timeout", "1s or more", "%s is too short", config.TimeText(l.ConnectTimeout))
	}
	switch {
	case l.SSLCert != "" && l.SSLKey == "":
		add("sslcert", "sslkey: FILE", "a certificate without its sslkey")
	case l.SSLCert == "" && l.SSLKey != "":
		add("sslkey", "sslcert: FILE", "a key without its sslcert")
	case l.SSLCert == "" && !l.SSLPassword.Empty():
		add("sslpassword", "sslcert: and sslkey:", "the password of no key")
	}
	if l.SSLMode == "disable" {
		for _, w := range words {
			if strings.HasPrefix(w[0], "ssl") && w[0] != "sslmode" {
				add(w[0], "leave one of them out", "%s has no effect with sslmode: disable", w[0])
			}
		}
	}
	return append(bad, l.checkFiles()...)
}

// checkFiles reads the files as a connection will.
func (l *Libpq) checkFiles() (bad []config.Problem) {
	read := func(path string, name File) []byte {
		if name == "" || name == systemRoots && path == "sslrootcert" {
			return nil
		}
		data, err := os.ReadFile(string(name))
		if err != nil { // it names the file
			bad = append(bad, config.Problem{Path: path, What: err.Error(), Hint: "a file in PEM form, relative to the configuration file"})
		}
		return data
	}
	if roots := read("sslrootcert", l.SSLRootCert); roots != nil && !x509.NewCertPool().AppendCertsFromPEM(roots) {
		bad = append(bad, config.Problem{Path: "sslrootcert", What: fmt.Sprintf("no certificate in %s", l.SSLRootCert), Hint: "the authority's certificate in PEM form (BEGIN CERTIFICATE)"})
	}
	cert, key := read("sslcert", l.SSLCert), read("sslkey", l.SSLKey)
	if cert == nil || key == nil {
		return bad
	}
	password, err := l.SSLPassword.Reveal()
	if err != nil {
		return bad
	}
	// pgx reads and compares both. The text is ours, so its cause may be shown.
	text := "host=127.0.0.1 sslmode=require"
	for _, w := range [][2]string{{"sslcert", string(l.SSLCert)}, {"sslkey", string(l.SSLKey)}, {"sslpassword", password}} {
		if w[1] != "" {
			text = addSetting(text, w[0], w[1])
		}
	}
	if _, err := pgconn.ParseConfig(text); err != nil {
		why := errors.New("they cannot be used")
		if wrapped, ok := errors.AsType[*pgconn.ParseConfigError](err); ok && wrapped.Unwrap() != nil {
			why = wrapped.Unwrap()
		}
		bad = append(bad, config.Problem{Path: "sslkey", What: fmt.Sprintf("%s and %s: %v", l.SSLCert, l.SSLKey, why), Hint: "the key that belongs to sslcert, and sslpassword if it is encrypted"})
	}
	return bad
}

// untrusted reports whether an error says that one side does not take the other's certificate.
func untrusted(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok { // sslmode=verify-ca
		return true
	}
	if _, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return true
	}
	alert, ok := errors.AsType[*net.OpError](err) // crypto/tls, for what the server complains of
	return ok && alert.Op == "remote error"
}
