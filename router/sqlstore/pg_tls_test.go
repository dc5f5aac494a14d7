package sqlstore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/routertest"
)

// An authority makes certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue makes a certificate for a name or an address, and its key.
func (a *authority) issue(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, own.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
}

// Field cases C30: no error shows a password; C08: what fails to log in is not connected, and an operator's.
func TestPostgresTLS(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // no files of ~/.postgresql
	ours, others := newAuthority(t), newAuthority(t)
	cert, key := ours.issue(t, "127.0.0.1")
	server := routertest.OwnPostgres(t, routertest.PostgresOwn{TCP: true,
		Settings: map[string]string{"ssl": "on", "ssl_cert_file": "server.crt", "ssl_key_file": "server.key", "ssl_ca_file": "ca.crt"},
		Files:    map[string][]byte{"server.crt": cert, "server.key": key, "ca.crt": ours.pem},
		HBA:      "local all all trust\nhostssl all gateway 127.0.0.1/32 cert\nhostssl all weir 127.0.0.1/32 trust\nhostssl all writer 127.0.0.1/32 scram-sha-256\n"})
	server.Exec(t, server.DSN("postgres"), "CREATE ROLE gateway SUPERUSER LOGIN; CREATE ROLE writer SUPERUSER LOGIN PASSWORD 'open sesame'")

	dir := t.TempDir()
	file := func(name string, data []byte) File {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return File(path)
	}
	ca, wrong := file("ca.pem", ours.pem), file("wrong.pem", others.pem)
	mine, myKey := ours.issue(t, "gateway")
	foreign, foreignKey := others.issue(t, "gateway")
	block, _ := pem.Decode(myKey)
	//lint:ignore SA1019 the only kind of encrypted key that libpq's own form has
	locked, err := x509.EncryptPEMBlock(rand.Reader, block.Type, block.Bytes, []byte("sesame"), x509.PEMCipherAES256)
	if err != nil {
		t.Fatal(err)
	}
	login := Libpq{SSLMode: "verify-full", SSLRootCert: ca, SSLCert: file("me.pem", mine), SSLKey: file("me.key", myKey)}

	// want is part of the error; "": a row goes in.
	check := func(name, dsn string, l Libpq, want string, operator bool) {
		t.Helper()
		cfg := Config{Postgres: plainSecret(strings.ReplaceAll(dsn, "PORT", fmt.Sprint(server.Port()))), Libpq: l}
		d := open(t, "", cfg)
		err := d.tryWrite(messages(1)...)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || router.IsNeedsOperator(err) != operator) {
			t.Errorf("%s: Write = %v, want %q", name, err, want)
		}
		if err != nil && strings.Contains(fmt.Sprintf("%+v", err), "sesame") {
			t.Errorf("%s: %+v", name, err)
		}
		if n := counted(t, d.metrics.connects); err != nil && n != 0 { // C08: that is no connection
			t.Errorf("%s: %v connections", name, n)
		}
	}
	const byAddress, byName = "postgres://weir@127.0.0.1:PORT/postgres", "postgres://weir@localhost:PORT/postgres"
	check("verify-full", byAddress, Libpq{SSLMode: "verify-full", SSLRootCert: ca}, "", false)
	check("verify-full, key=value", "host=127.0.0.1 port=PORT user=weir dbname=postgres", Libpq{SSLMode: "verify-full", SSLRootCert: ca}, "", false)
	check("another host's certificate", byName, Libpq{SSLMode: "verify-full", SSLRootCert: ca}, "wanted to match localhost", true)
	check("verify-ca takes it", byName, Libpq{SSLMode: "verify-ca", SSLRootCert: ca}, "", false)
	check("another authority", byAddress, Libpq{SSLMode: "verify-full", SSLRootCert: wrong}, "signed by unknown authority", true)
	check("another authority, verify-ca", byAddress, Libpq{SSLMode: "verify-ca", SSLRootCert: wrong}, "signed by unknown authority", true)
	check("none of the system's", byAddress, Libpq{SSLMode: "verify-full"}, "signed by unknown authority", true)
	check("require does not look", byAddress, Libpq{SSLMode: "require"}, "", false)
	check("no server name", byAddress, Libpq{SSLMode: "require", SSLSNI: new(bool)}, "", false)
	check("clear text", byAddress, Libpq{SSLMode: "disable"}, "no encryption", true)
	check("client certificate", "postgres://gateway@127.0.0.1:PORT/postgres", login, "", false)
	check("wrong password", "postgres://writer:no%20sesame@127.0.0.1:PORT/postgres", Libpq{SSLMode: "require"}, "28P01", true)
	check("right password", "postgres://writer:open%20sesame@127.0.0.1:PORT/postgres", Libpq{SSLMode: "require"}, "", false)
	withPassword := login
	withPassword.SSLKey, withPassword.SSLPassword = file("locked.key", pem.EncodeToMemory(locked)), plainSecret("sesame")
	check("encrypted key", "postgres://gateway@127.0.0.1:PORT/postgres", withPassword, "", false)
	check("no client certificate", "postgres://gateway@127.0.0.1:PORT/postgres", Libpq{SSLMode: "verify-full", SSLRootCert: ca}, "valid client certificate", true)
	stranger := login
	stranger.SSLCert, stranger.SSLKey = file("stranger.pem", foreign), file("stranger.key", foreignKey)
	// crypto/tls does not send a certificate whose authority the server did not name.
	check("a stranger's certificate", "postgres://gateway@127.0.0.1:PORT/postgres", stranger, "certificate", true)

	server.Exec(t, server.DSN("postgres"), "ALTER SYSTEM SET ssl = off")
	server.Exec(t, server.DSN("postgres"), "SELECT pg_reload_conf()")
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if server.Query(t, server.DSN("postgres"), "SHOW ssl")[0] == "off" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("ssl stays on")
		}
	}
	check("a server without TLS", byAddress, Libpq{SSLMode: "verify-full", SSLRootCert: ca}, "refused TLS", false)

	refused := func(want string, l Libpq, dsn string) {
		t.Helper()
		c := Config{Postgres: plainSecret(strings.ReplaceAll(dsn, "PORT", "5432")), Libpq: l}
		var all []string
		for _, p := range c.Check() {
			all = append(all, p.Path+": "+p.What)
		}
		if got := strings.Join(all, "\n"); !strings.Contains(got, want) || strings.Contains(got, "sesame") {
			t.Errorf("check says %q, want %q", got, want)
		}
	}
	refused("sslrootcert: open "+dir+"/nothing: no such file", Libpq{SSLRootCert: File(dir + "/nothing")}, byAddress)
	refused("sslrootcert: no certificate in "+string(login.SSLKey), Libpq{SSLRootCert: login.SSLKey}, byAddress)
	refused("sslcert: open "+dir+"/nothing", Libpq{SSLCert: File(dir + "/nothing"), SSLKey: login.SSLKey}, byAddress)
	refused("private key does not match public key", Libpq{SSLCert: login.SSLCert, SSLKey: stranger.SSLKey}, byAddress)
	refused("unable to find sslpassword", Libpq{SSLCert: login.SSLCert, SSLKey: withPassword.SSLKey}, byAddress)
	refused("sslkey: ", Libpq{SSLCert: login.SSLCert, SSLKey: withPassword.SSLKey, SSLPassword: plainSecret("no sesame")}, byAddress)
	refused("sslcert: a certificate without its sslkey", Libpq{SSLCert: login.SSLCert}, byAddress)
	refused("sslmode: unknown word \"verify\"", Libpq{SSLMode: "verify"}, byAddress)
	refused("sslmode: the connection string says sslmode as well", Libpq{SSLMode: "require"}, byAddress+"?sslmode=disable")
	refused("sslmode: the connection string says sslmode as well", Libpq{SSLMode: "require"}, "host='a b' sslmode = disable")
	refused("sslrootcert has no effect with sslmode: disable", Libpq{SSLMode: "disable", SSLRootCert: ca}, byAddress)
	refused("connect_timeout: ", Libpq{ConnectTimeout: time.Millisecond}, byAddress)
	refused("target_session_attrs: unknown word", Libpq{TargetSession: "standby"}, byAddress)
}

func TestConnectionStringsAreSearchedForSettings(t *testing.T) {
	check := func(text, name string, want bool) {
		t.Helper()
		if says(text, name) != want {
			t.Errorf("says(%q, %q) = %v", text, name, !want)
		}
	}
	check("host=a sslmode=disable", "sslmode", true)
	check("host=a sslmode = 'disable'", "sslmode", true)
	check(`password='a\' sslmode=x' host=a`, "sslmode", false)
	check(`password=a\ sslmode=x host=a`, "sslmode", false)
	check("password='x' sslmode=require", "sslmode", true)
	check("postgres://a/b?sslmode=disable", "sslmode", true)
	check("postgres://sslmode=x@a/b", "sslmode", false)
}

func TestKeyFilesAreRelativeToTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "weir.yaml")
	if err := os.WriteFile(file, []byte("postgres: postgres://weir@db.example/logs\nsslrootcert: ca.pem\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var c Config
	err := config.Load(&c, config.Options{}, file).Err()
	if want := "open " + filepath.Join(dir, "ca.pem") + ": no such file"; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "weir.yaml:2:14: ") {
		t.Errorf("%v, want %s", err, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), newAuthority(t).pem, 0o600); err != nil {
		t.Fatal(err)
	}
	c = Config{}
	if err := config.Load(&c, config.Options{}, file).Err(); err != nil {
		t.Error(err)
	}
}
