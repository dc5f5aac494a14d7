package wasmhost

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
)

// A compileCache is a directory with compiled modules. It may be shared with other processes of the same user, of this
// and of other versions of weir.
//
// wazero keeps the machine code in files that it names itself. It checks the code in them and trusts the rest, which is
// executed as well. Therefore each has a small file of weir's beside it, the entry, named by the key of the module,
// which says what the file's whole content was. Without a good entry a module is compiled again.
type compileCache struct {
	dir     string // all of it
	root    string // for modules compiled as this process does
	most    int64  // bytes in dir
	log     *slog.Logger
	wazero  wazero.CompilationCache
	command []string      // that compiles; nil: this process does
	try     bool          // the interpreter runs the modules: nothing is kept but that they are harmless
	slots   chan struct{} // one for each that is being compiled
	release func() error  // of a directory that ends with us; nil: it stays

	mu   sync.Mutex
	busy map[string]chan struct{} // keys that somebody has to do with; closed when that is over
}

const (
	cacheSize   = 256 << 20        // bytes, unless the options say otherwise
	rootPrefix  = "modules-"       // of folders for modules that are compiled in the same way
	workPrefix  = "new-"           // of folders in which something is being made
	workAge     = 10 * time.Minute // after which such a folder is nobody's any more
	entrySuffix = ".entry"
)

// openCache makes the directory ready that o names, or one for this process alone. It is refused when others could have
// written to it, because its content is executed.
func openCache(o Options, interpret bool, log *slog.Logger) (*compileCache, error) {
	c := &compileCache{
		dir: o.CacheDir, most: o.CacheSize, command: o.Compiler, try: interpret, log: log,
		slots: make(chan struct{}, runtime.GOMAXPROCS(0)), busy: map[string]chan struct{}{},
	}
	if c.most == 0 {
		c.most = cacheSize
	}
	var err error
	if c.dir == "" {
		c.dir, c.release, err = temporaryDirectory()
	} else if err = ownDirectory(c.dir); err == nil {
		c.dir, err = filepath.Abs(c.dir)
	}
	if err == nil {
		c.root = filepath.Join(c.dir, cacheSettings(interpret))
		c.wazero, err = wazero.NewCompilationCacheWithDir(c.root)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open compile cache: %w", err), c.close(context.Background()))
	}
	c.trim()
	return c, nil
}

// cacheSettings names what makes the same module another machine code, beside the processor, which wazero looks at.
func cacheSettings(interpret bool) string {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "github.com/tetratelabs/wazero" {
				version = m.Version
				if m.Replace != nil {
					version += "=" + m.Replace.Path + "@" + m.Replace.Version
				}
			}
		}
	}
	text := fmt.Sprintln("1", version, runtime.GOOS, runtime.GOARCH, uint64(coreFeatures), "debug=false", interpret)
	sum := sha256.Sum256([]byte(text))
	return rootPrefix + hex.EncodeToString(sum[:8])
}

func cacheKey(module []byte) string {
	sum := sha256.Sum256(module)
	return hex.EncodeToString(sum[:])
}

// An entry says what a file of wazero's holds.
type entry struct {
	file string // relative to root, with slashes; "": nothing is kept, the module is known to be harmless
	size int64
	sum  uint32
}

const entryForm = "weir compiled module 1\nfile %q\nsize %d\ncrc32c %08x\n"

func (e entry) String() string { return fmt.Sprintf(entryForm, e.file, e.size, e.sum) }

// readEntry fails on anything that String did not write.
func readEntry(path string) (e entry, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return e, err
	}
	if _, err = fmt.Sscanf(string(b), entryForm, &e.file, &e.size, &e.sum); err == nil && e.String() != string(b) {
		err = errors.New("it has other content than weir writes")
	}
	if err == nil && e.file != "" && !filepath.IsLocal(filepath.FromSlash(e.file)) {
		err = errors.New("it names a file elsewhere")
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return e, err
}

// sumFile reads all of a file. It is quick: a gigabyte takes a fifth of a second.
func sumFile(path string) (e entry, err error) {
	f, err := os.Open(path)
	if err != nil {
		return e, err
	}
	defer f.Close()
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	e.size, err = io.CopyBuffer(sum, onlyReader{f}, make([]byte, 64<<10))
	e.sum = sum.Sum32()
	return e, err
}

type onlyReader struct{ io.Reader } // without the methods by which io.Copy would avoid the buffer

// has tells whether a module's file is there and is what was written, and makes it the last one to be thrown out.
func (c *compileCache) has(key string) bool {
	path := filepath.Join(c.root, key+entrySuffix)
	want, err := readEntry(path)
	if err == nil && want.file != "" {
		var got entry
		file := filepath.Join(c.root, filepath.FromSlash(want.file))
		if got, err = sumFile(file); err == nil && (got.size != want.size || got.sum != want.sum) {
			err = fmt.Errorf("%s is damaged", file)
		}
		touch(file)
	}
	if err == nil {
		touch(path)
		return true
	}
	if !errors.Is(err, fs.ErrNotExist) {
		c.log.Warn("a file of the compile cache cannot be used and is made again", "dir", c.dir, "error", err)
		c.forget(key)
	}
	return false
}

// touch marks a file as used now. A cache that may only be read has no order, and needs none.
func touch(path string) {
	now := time.Now()
	os.Chtimes(path, now, now)
}

// forget removes what is kept of a module.
func (c *compileCache) forget(key string) {
	path := filepath.Join(c.root, key+entrySuffix)
	if e, err := readEntry(path); err == nil && e.file != "" {
		os.Remove(filepath.Join(c.root, filepath.FromSlash(e.file)))
	}
	os.Remove(path)
}

// alone waits until nobody else has to do with a module and returns what lets the next one in. Of two at once the second
// would compile in vain; and wazero hands out to the second what the first has not quite read.
func (c *compileCache) alone(ctx context.Context, key string) (leave func(), err error) {
	c.mu.Lock()
	for busy := c.busy[key]; busy != nil; busy = c.busy[key] {
		c.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		c.mu.Lock()
	}
	done := make(chan struct{})
	c.busy[key] = done
	c.mu.Unlock()
	return func() {
		c.mu.Lock()
		delete(c.busy, key)
		c.mu.Unlock()
		close(done)
	}, nil
}

// make compiles a module into the cache.
func (c *compileCache) make(ctx context.Context, key string, module []byte) error {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	o := &compileOrder{Root: c.root, Work: filepath.Join(c.root, workPrefix+rand.Text()), Key: key, Interpret: c.try, Size: len(module)}
	defer os.RemoveAll(o.Work)
	var err error
	if c.command == nil {
		err = o.carryOut(ctx, module)
	} else {
		err = compileInChild(ctx, c.command, o, module)
	}
	if err == nil {
		c.trim()
	}
	return err
}

// trim removes the files that were not used for longest, until the rest is within the bound, and what was left half
// made. Each weir that uses the directory may do so at any time: who misses a file makes it again.
func (c *compileCache) trim() {
	type file struct {
		path string
		size int64
		used time.Time
	}
	var files []file
	sum := int64(0)
	filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == c.dir {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if d.IsDir() {
			if filepath.Dir(path) == c.dir && !strings.HasPrefix(d.Name(), rootPrefix) && !strings.HasPrefix(d.Name(), "wazero-") {
				return fs.SkipDir // who knows whose
			}
			if strings.HasPrefix(d.Name(), workPrefix) {
				if time.Since(info.ModTime()) > workAge {
					os.RemoveAll(path)
				}
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Dir(path) == c.dir {
			return nil
		}
		files = append(files, file{path, info.Size(), info.ModTime()})
		sum += info.Size()
		return nil
	})
	slices.SortFunc(files, func(a, b file) int { return a.used.Compare(b.used) })
	for i := 0; sum > c.most && i < len(files)-2; i++ { // the last two are a module that was just made
		if os.Remove(files[i].path) == nil {
			sum -= files[i].size
		}
	}
}

func (c *compileCache) close(ctx context.Context) (err error) {
	if c.wazero != nil {
		err = c.wazero.Close(ctx)
	}
	if c.release != nil {
		err = errors.Join(err, c.release())
	}
	return err
}

// isCacheError tells whether a file failed and not the module; wazero's errors have no types.
func isCacheError(err error) bool {
	_, file := errors.AsType[*fs.PathError](err)
	_, link := errors.AsType[*os.LinkError](err)
	return file || link || strings.Contains(err.Error(), "compilationcache:")
}
