package sqlstore

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMountsSayWhatADirectoryIsOn(t *testing.T) {
	mounts := filepath.Join(t.TempDir(), "mounts")
	if err := os.WriteFile(mounts, []byte(`rootfs / rootfs rw 0 0
/dev/sda1 / ext4 rw 0 0
me@there: /mnt/far\040away fuse.sshfs rw 0 0
/dev/sdb1 /mnt/far\040away/near fuseblk rw 0 0
short
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{"/": "ext4", "/mnt": "ext4", "/mnt/far away": "fuse.sshfs", "/mnt/far away/x": "fuse.sshfs",
		"/mnt/far away2": "ext4", "/mnt/far away/near/by": "fuseblk"} {
		if got := mountKind(dir, mounts); got != want {
			t.Errorf("%s is on %q, want %q", dir, got, want)
		}
	}
	if got := mountKind("/", mounts+"-not"); got != "" {
		t.Errorf("without a list: %q", got)
	}
}
