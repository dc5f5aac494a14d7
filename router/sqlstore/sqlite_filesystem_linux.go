package sqlstore

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// networkMagic are the file systems, by f_type of statfs(2), where processes on
// other machines, or another kernel, may change a file behind this kernel's back.
var networkMagic = map[uint32]string{
	0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB", 0x01021997: "9p", 0x65735546: "FUSE",
	0x00c36400: "Ceph", 0x5346414f: "AFS", 0x6b414653: "AFS", 0x73757245: "Coda", 0x564c: "NCP", 0x0bd00bd0: "Lustre",
	0x01161970: "GFS2", 0x7461636f: "OCFS2", 0x47504653: "GPFS", 0x19830326: "BeeGFS", 0x786f4256: "vboxsf", 0xaad7aaea: "PanFS",
}

// NetworkFilesystem names the kind of file system of a directory when a SQLite
// database is not safe there, such as NFS or FUSE; "" when it is, or when that is not known.
func NetworkFilesystem(dir string) string {
	var s unix.Statfs_t
	err := unix.Statfs(dir, &s)
	for up := filepath.Dir(dir); err == unix.ENOENT && up != dir; up = filepath.Dir(dir) {
		dir, err = up, unix.Statfs(up, &s) // it will be made there
	}
	if err != nil {
		return ""
	}
	name := networkMagic[uint32(s.Type)]
	if name == "FUSE" {
		// fuse.sshfs says more. fuseblk is a local disk with a driver that is a program.
		switch kind := mountKind(dir, "/proc/self/mounts"); {
		case kind == "fuseblk":
			return ""
		case kind != "":
			return kind
		}
	}
	return name
}

// mountKind is the type of the file system that holds dir, as the kernel's list of mounts names it.
func mountKind(dir, mounts string) (kind string) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	f, err := os.Open(mounts)
	if err != nil {
		return ""
	}
	defer f.Close()
	longest := -1
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) < 3 {
			continue
		}
		at := unescape.Replace(words[1])
		if len(at) >= longest && (at == "/" || dir == at || strings.HasPrefix(dir, at+"/")) {
			longest, kind = len(at), words[2] // of two at the same place the later one hides the other
		}
	}
	return kind
}

// diskSpace tells how many bytes of the file system of dir are free for weir,
// and how many it has in all.
func diskSpace(dir string) (free, total int64, ok bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil || s.Blocks == 0 {
		return 0, 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize), true
}

// allocate gives f blocks of its own for size bytes.
func allocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		return fill(f, size)
	}
	return err
}
