// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tcm/internal/bench"
	"tcm/internal/launch"
	"tcm/internal/temporary"
)

// sqliteScript builds an indexed table in memory and asks it questions.
const sqliteScript = `
create table item (id integer primary key, name text, kind text, price real, note text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 150000)
insert into item
  select i, 'item ' || (i * 7919 % 150000), 'kind ' || (i % 97), (i * 31 % 1000) / 10.0,
         substr('a note of some length that is stored with the item', 1, 8 + i % 40) from n;
create index item_name on item (name);
create index item_kind on item (kind, price);
select kind, count(*), sum(price), group_concat(substr(name, 1, 12), ';') from item group by kind;
select count(*) from item a join item b on b.name = 'item ' || a.id where a.kind < b.kind;
select name, price from item order by note, price desc limit 1000;
delete from item where id % 3 = 0;
select count(distinct note || kind) from item;
`

// pythonScript builds records, writes and reads them as JSON, and sorts them.
const pythonScript = `
import json
people = [{"id": i, "name": "person %d" % (i * 7919 % 60000), "tags": ["t%d" % (i % k) for k in range(2, 9)],
           "address": {"street": "street %d" % (i % 500), "number": i % 100}} for i in range(60000)]
people = json.loads(json.dumps(people))
people.sort(key=lambda p: (p["address"]["street"], p["name"]))
by_street = {}
for p in people:
    by_street.setdefault(p["address"]["street"], []).append(p["name"].title())
print(sum(len(",".join(v)) for v in by_street.values()))
`

// workloadNames are the multi-threaded workloads to choose from, the most telling first.
var workloadNames = []string{"larson-8t", "larson-2t", "t_test1-2t-4k"}

// Cases returns what can be run here, and the names of what is missing for more.
func (d *Demo) Cases(workloads []bench.Workload, build bench.Build) (cases []Case, missing []string) {
	if path, err := exec.LookPath("sqlite3"); err == nil {
		cases = append(cases, Case{
			Name:  "sqlite3",
			About: "builds a table of 150,000 rows with two indexes in memory and queries it",
			run:   d.runProgram(sqliteScript, path, "-batch", ":memory:"),
		})
	} else {
		missing = append(missing, "sqlite3")
	}
	server, serverErr := exec.LookPath("redis-server")
	client, clientErr := exec.LookPath("redis-benchmark")
	if serverErr == nil && clientErr == nil {
		cases = append(cases, Case{
			Name:  "redis",
			About: "the server's cost of 600,000 requests of redis-benchmark; time is until all are answered",
			run:   d.runRedis(server, client),
		})
	} else {
		missing = append(missing, "redis-server and redis-benchmark")
	}
	if path, err := findPython(); err == nil {
		cases = append(cases, Case{
			Name:  "python3",
			About: "60,000 records to JSON and back, sorted and grouped; with PYTHONMALLOC=malloc, Python's own pools off",
			run:   d.runPython(path),
		})
	} else {
		missing = append(missing, "python3")
	}
	if workload, found := chooseWorkload(workloads, build); found {
		cases = append(cases, Case{
			Name:  workload.Name,
			About: workload.Description,
			run:   d.runProgram("", build.Words(workload)...),
		})
	} else {
		missing = append(missing, "the workload "+workloadNames[0])
	}
	return cases, missing
}

// findPython prefers the system's Python: what comes first in PATH may be a shell script that
// chooses between versions and costs more than the program.
func findPython() (string, error) {
	const system = "/usr/bin/python3"
	if _, err := os.Stat(system); err == nil {
		return system, nil
	}
	return exec.LookPath("python3")
}

func (d *Demo) runPython(path string) runFunc {
	run := d.runProgram("", path, "-c", pythonScript)
	return func(ctx context.Context, variables map[string]string) (Figures, error) {
		variables["PYTHONMALLOC"] = "malloc"
		return run(ctx, variables)
	}
}

func chooseWorkload(workloads []bench.Workload, build bench.Build) (bench.Workload, bool) {
	for _, name := range workloadNames {
		for _, workload := range workloads {
			if workload.Name == name && build.Missing(workload) == "" {
				return workload, true
			}
		}
	}
	return bench.Workload{}, false
}

// runRedis measures a server while redis-benchmark, which runs without the allocator, asks it.
func (d *Demo) runRedis(server, client string) runFunc {
	return func(ctx context.Context, variables map[string]string) (Figures, error) {
		folder, err := temporary.Folder("tcm-demo-", "the server and its socket")
		if err != nil {
			return Figures{}, err
		}
		defer os.RemoveAll(folder)
		socket := filepath.Join(folder, "redis.sock")
		reader, writer := io.Pipe()
		defer reader.Close()
		process, err := launch.Start(d.Launcher, launch.Command{
			Program: []string{server, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no",
				"--dir", folder, "--daemonize", "no"},
			Variables: variables, Output: writer, Errors: writer, Timeout: runTimeout,
		})
		if err != nil {
			return Figures{}, err
		}
		defer process.Kill()
		if err := awaitReady(reader, process); err != nil {
			return Figures{}, err
		}
		begin := time.Now()
		asking, err := askRedis(ctx, client, socket)
		if err != nil {
			return Figures{}, err
		}
		elapsed := time.Since(begin)
		if err := stopRedis(socket); err != nil {
			return Figures{}, err
		}
		result, err := process.Wait(ctx)
		if err == nil && result.Failure() != "" {
			err = errors.New("redis-server: " + result.Failure())
		}
		figures := figuresOf(result)
		figures.Seconds = elapsed.Seconds()
		figures.helpers = asking
		return figures, err
	}
}

// awaitReady reads the server's log until it says that it accepts connections, and keeps emptying
// the log afterwards.
func awaitReady(log *io.PipeReader, process *launch.Process) error {
	ready := make(chan struct{})
	go func() {
		scanner := bufio.NewScanner(log)
		announced := false
		for scanner.Scan() {
			if !announced && strings.Contains(strings.ToLower(scanner.Text()), "ready to accept connections") {
				announced = true
				close(ready)
			}
		}
	}()
	select {
	case <-ready:
		return nil
	case <-process.Ended():
		return errors.New("redis-server ended before it accepted connections")
	case <-time.After(runTimeout):
		return errors.New("redis-server did not become ready")
	}
}

// askRedis returns the CPU time of the client.
func askRedis(ctx context.Context, client, socket string) (time.Duration, error) {
	var spent time.Duration
	for _, tests := range [][]string{
		{"-t", "set,get", "-d", "300", "-r", "60000", "-n", "200000"},
		{"-t", "lpush,sadd", "-d", "60", "-r", "60000", "-n", "100000"},
	} {
		words := append([]string{"-s", socket, "-q", "-c", "20", "-P", "16"}, tests...)
		command := exec.CommandContext(ctx, client, words...)
		if output, err := command.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("redis-benchmark: %w: %s", err, output)
		}
		spent += command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	}
	return spent, nil
}

func stopRedis(socket string) error {
	connection, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = io.WriteString(connection, "SHUTDOWN NOSAVE\r\n")
	return err
}
