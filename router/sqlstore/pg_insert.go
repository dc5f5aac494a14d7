package sqlstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Rows that COPY cannot bring go by INSERT … SELECT FROM unnest(…): one
// parameter a column, an array of all its values (PostgreSQL 12 to 17, binary
// format of arrays: array_recv).

// elements are the element type's OID and the array type's, by kind. Kinds that
// are not here are sent as text, which is cast to the column's type.
var elements = map[pgKind][2]uint32{
	pgBool: {16, 1000}, pgInt2: {21, 1005}, pgInt4: {23, 1007}, pgInt8: {20, 1016}, pgFloat4: {700, 1021}, pgFloat8: {701, 1022},
	pgJSON: {114, 199}, pgJSONB: {3802, 3807}, pgBytea: {17, 1001}, pgUUID: {2950, 2951},
	pgDate: {1082, 1182}, pgTimestamp: {1114, 1115}, pgTimestamptz: {1184, 1185},
}

// element is the OIDs of what a value of the type is sent as, and of its array.
func (t *pgType) element() (one, array uint32) {
	if oids, ok := elements[t.kind]; ok && !t.serverReads {
		return oids[0], oids[1]
	}
	return 25, 1009 // text
}

// insertion is where arrays are put together.
type insertion struct {
	arrays  [][]byte
	oids    []uint32
	formats []int16
}

// insert sends the encoded rows from, including, to to, excluding, in one statement.
func (d *postgres) insert(ctx context.Context, from, to int) error {
	if d.t.insert == "" {
		d.t.insert = d.insertSQL(d.t)
	}
	in := &d.insertion
	n := len(d.columns)
	if len(in.arrays) != n {
		in.arrays, in.oids, in.formats = make([][]byte, n), make([]uint32, n), make([]int16, n)
	}
	for i := range n {
		one, array := d.t.types[i].element()
		in.oids[i], in.formats[i] = array, 1
		if cap(in.arrays[i]) > keptBuffer {
			in.arrays[i] = nil
		}
		a := binary.BigEndian.AppendUint32(in.arrays[i][:0], 1) // dimension
		a = binary.BigEndian.AppendUint32(a, 1)                 // there may be nulls
		a = binary.BigEndian.AppendUint32(a, one)
		a = binary.BigEndian.AppendUint32(a, uint32(to-from))
		in.arrays[i] = binary.BigEndian.AppendUint32(a, 1) // index of the first
	}
	data := d.part(from, to)
	for range to - from {
		data = data[2:]
		for i := range n {
			size := 4
			if long := int32(binary.BigEndian.Uint32(data)); long > 0 {
				size += int(long)
			}
			in.arrays[i] = append(in.arrays[i], data[:size]...)
			data = data[size:]
		}
	}
	_, err := d.conn.ExecParams(ctx, d.t.insert, in.arrays, in.oids, in.formats, nil).Close()
	return err
}

// insertSQL is the statement. The rows go in in the order sent. Of those with
// equal keys that are to be updated the last one alone goes in, since a statement
// may update a row once.
func (d *postgres) insertSQL(t *pgTable) string {
	var values, params, names []string
	for i := range d.columns {
		names = append(names, fmt.Sprintf("c%d", i))
		params = append(params, fmt.Sprintf("$%d", i+1))
		values = append(values, fmt.Sprintf("c%d::%s AS c%[1]d", i, t.types[i].plain))
	}
	into := fmt.Sprintf("INSERT INTO %s (%s) ", t.sql(), d.names)
	rows := fmt.Sprintf("FROM unnest(%s) WITH ORDINALITY AS u (%s, n)", strings.Join(params, ", "), strings.Join(names, ", "))
	all := "SELECT " + strings.Join(values, ", ")
	conflict := d.cfg.conflictSQL()
	if len(d.cfg.updates()) == 0 {
		return into + all + " " + rows + conflict
	}
	// A null equals nothing in a key, while DISTINCT takes nulls for equal.
	var key, null []string
	for i := range d.columns {
		if slices.Contains(d.cfg.OnConflict.Key, d.columns[i].name) {
			key, null = append(key, names[i]), append(null, names[i]+" IS NULL")
		}
	}
	by := strings.Join(key, ", ") + ", CASE WHEN " + strings.Join(null, " OR ") + " THEN n END"
	return fmt.Sprintf("%sSELECT %s FROM (SELECT DISTINCT ON (%s) * FROM (%s, n %s) u ORDER BY %[3]s, n DESC) u ORDER BY n%[6]s",
		into, strings.Join(names, ", "), by, all, rows, conflict)
}

// planInsert has the server plan the INSERT of a row, without storing one: that
// refuses a view that takes no rows, a key of on_conflict that is none, and a table
// that this role may not write into. A table that is named by a template is not looked at.
func (d *postgres) planInsert(ctx context.Context) error {
	if d.naming.fixed == "" {
		return nil
	}
	nulls := strings.TrimSuffix(strings.Repeat("NULL, ", len(d.columns)), ", ")
	sql := fmt.Sprintf("EXPLAIN INSERT INTO %s (%s) VALUES (%s)%s", d.table.sql(), d.names, nulls, d.cfg.conflictSQL())
	if _, err := d.exec(ctx, sql); err != nil {
		return beforeRows(pgFailure("insert into "+d.table.String(), err))
	}
	return nil
}
