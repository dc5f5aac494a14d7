package wasmhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// A compileOrder asks for one module to be compiled into a cache. It goes to the child as one line of JSON, followed by the
// module.
type compileOrder struct {
	Root      string // of the cache
	Work      string // a folder in it that carryOut makes; who gave the order removes it
	alone     bool   // this process does nothing else, so that all that it allocates is the module's
	Key       string // of the module
	Interpret bool
	Size      int // bytes of the module
	Limits    limits

	making sync.Mutex // held while folders are made in Work
}

// limits are what the process that carries out an order may take.
type limits struct {
	Memory     int64 // bytes, beside what it has when it starts
	CPUSeconds uint64
}

// Reading a module back takes memory too, in the process that routes: wazero decodes and checks it again. In that there
// are modules of a few hundred kilobytes which become hundreds of megabytes (10 000 locals are six bytes). What compilers
// make takes about 8 times its size, with the machine code, and 25 times where it is interpreted.
const (
	loadBase        = 16 << 20 // bytes that any module may take
	loadGrowth      = 12       // bytes more for each of its own
	interpretGrowth = 40
)

// carryOut compiles the module in this process, without any limit of its own but, where the process is for that alone,
// what reading it back may take. The
// cache has it on return, whole, or not at all.
func (o *compileOrder) carryOut(ctx context.Context, module []byte) error {
	if err := o.begin(); err != nil {
		return cacheFault(err)
	}
	if o.Interpret {
		took, err := measureLoad(ctx, runtimeConfig(true), module)
		if err == nil {
			err = o.bound(took, interpretGrowth)
		}
		if err != nil {
			return err
		}
		return o.enter(entry{})
	}
	cache, err := o.workCache()
	if err != nil {
		return cacheFault(err)
	}
	config := runtimeConfig(false).WithCompilationCache(cache)
	r := wazero.NewRuntimeWithConfig(ctx, config)
	_, err = compileModule(ctx, r, module)
	err = errors.Join(err, r.Close(ctx), cache.Close(ctx))
	if err != nil {
		return cacheFault(err)
	}
	file, err := onlyFile(o.Work)
	if err != nil {
		return cacheFault(err)
	}
	e, err := sumFile(filepath.Join(o.Work, file))
	if err != nil {
		return cacheFault(err)
	}
	// As the host will: with a cache of its own, so that nothing is in memory, and an ended context.
	if cache, err = o.workCache(); err != nil {
		return cacheFault(err)
	}
	defer cache.Close(ctx)
	ended, cancel := context.WithCancel(experimental.WithCompilationWorkers(ctx, 2))
	cancel()
	took, err := measureLoad(ended, runtimeConfig(false).WithCompilationCache(cache), module)
	if err != nil {
		return fmt.Errorf("what was compiled cannot be read back: %w", err)
	}
	if err := o.bound(took+e.size, loadGrowth); err != nil {
		return err
	}
	e.file = filepath.ToSlash(file)
	place := filepath.Join(o.Root, file)
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		return cacheFault(err)
	}
	if err := os.Rename(filepath.Join(o.Work, file), place); err != nil {
		return cacheFault(err)
	}
	return o.enter(e)
}

func (o *compileOrder) begin() error {
	o.making.Lock()
	defer o.making.Unlock()
	return os.Mkdir(o.Work, 0o700)
}

func (o *compileOrder) workCache() (wazero.CompilationCache, error) {
	o.making.Lock()
	defer o.making.Unlock()
	return wazero.NewCompilationCacheWithDir(o.Work)
}

// abandon removes what was begun. carryOut, if it runs, never gets on: the process is to be ended.
func (o *compileOrder) abandon() {
	o.making.Lock()
	os.RemoveAll(o.Work)
}

// enter writes the entry of the order's module.
func (o *compileOrder) enter(e entry) error {
	made := filepath.Join(o.Work, "entry")
	err := os.WriteFile(made, []byte(e.String()), 0o600)
	if err == nil {
		err = os.Rename(made, filepath.Join(o.Root, o.Key+entrySuffix))
	}
	return cacheFault(err)
}

func (o *compileOrder) bound(took int64, growth int64) error {
	if most := loadBase + growth*int64(o.Size); o.alone && took > most {
		return fmt.Errorf("reading the compiled module takes %d MiB of memory, and one of %d bytes may take %d MiB", took>>20, o.Size, most>>20)
	}
	return nil
}

// measureLoad compiles a module, or reads it from the cache in config, and returns how many bytes that allocated.
func measureLoad(ctx context.Context, config wazero.RuntimeConfig, module []byte) (int64, error) {
	r := wazero.NewRuntimeWithConfig(context.WithoutCancel(ctx), config)
	defer r.Close(context.WithoutCancel(ctx))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := compileModule(ctx, r, module)
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc), err
}

// onlyFile is the one file below dir, relative to it.
func onlyFile(dir string) (file string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if file != "" {
			return fmt.Errorf("%s: it holds two files, and one was to be written", dir)
		}
		file, err = filepath.Rel(dir, path)
		return err
	})
	if err == nil && file == "" {
		err = fmt.Errorf("%s: nothing was written to it", dir)
	}
	return file, err
}

// cacheFault tells of a file that failed as the operator's matter.
func cacheFault(err error) error {
	if err != nil && isCacheError(err) {
		return fmt.Errorf("the compile cache cannot be written: %v", err)
	}
	return err
}
