// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// unlimited is below what the first version of cgroups says where there is no limit, which is the
// largest multiple of the page size.
const unlimited = int64(1) << 62

// cgroupLimit returns the smallest memory limit that holds for this process, and the file that has
// it; no file where there is no limit.
func (m Machine) cgroupLimit() (limit int64, source string) {
	data, err := fs.ReadFile(m.Files, "proc/self/cgroup")
	if err != nil {
		return 0, ""
	}
	limit = unlimited
	for _, line := range strings.Split(string(data), "\n") {
		// hierarchy:controllers:path
		parts := strings.SplitN(line, ":", 3)
		if len(parts) < 3 {
			continue
		}
		root, names := cgroupFiles(parts[0], parts[1])
		m.lowerLimit(root, parts[2], names, &limit, &source)
	}
	return limit, source
}

// cgroupFiles returns where a hierarchy is mounted and which of its files are memory limits.
func cgroupFiles(hierarchy, controllers string) (root string, names []string) {
	if hierarchy == "0" {
		return "sys/fs/cgroup", []string{"memory.max", "memory.high"}
	}
	for _, controller := range strings.Split(controllers, ",") {
		if controller == "memory" {
			return "sys/fs/cgroup/memory", []string{"memory.limit_in_bytes"}
		}
	}
	return "", nil
}

// lowerLimit looks at a group and at all above it.
func (m Machine) lowerLimit(root, group string, names []string, limit *int64, source *string) {
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		for _, name := range names {
			file := path.Join(root, group, name)
			line, known := m.line(file)
			if !known {
				continue
			}
			// "max" is no number.
			if value, err := strconv.ParseInt(line, 10, 64); err == nil && value < *limit {
				*limit, *source = value, "/"+file
			}
		}
		if group == "/" {
			return
		}
	}
}
