//go:build wasip1

package weir

import "unsafe"

// The host's functions, as filters/ABI.md has them. A string is passed as its address and length.

//go:wasmimport weir_v1 field_get
func fieldGet(key string, buf unsafe.Pointer, n uint32) int32

//go:wasmimport weir_v1 field_type
func fieldType(key string) int32

//go:wasmimport weir_v1 field_get_i64
func fieldGetI64(key string, out unsafe.Pointer) int32

//go:wasmimport weir_v1 field_get_f64
func fieldGetF64(key string, out unsafe.Pointer) int32

//go:wasmimport weir_v1 field_set
func fieldSet(key string, value string) int32

//go:wasmimport weir_v1 field_set_json
func fieldSetJSON(key string, value string) int32

//go:wasmimport weir_v1 field_set_i64
func fieldSetI64(key string, value int64) int32

//go:wasmimport weir_v1 field_set_f64
func fieldSetF64(key string, value float64) int32

//go:wasmimport weir_v1 field_unset
func fieldUnset(key string) int32

//go:wasmimport weir_v1 field_count
func fieldCount() int32

//go:wasmimport weir_v1 field_name
func fieldName(i int32, buf unsafe.Pointer, n uint32) int32

//go:wasmimport weir_v1 sd_get
func sdGet(id string, param string, buf unsafe.Pointer, n uint32) int32

//go:wasmimport weir_v1 sd_set
func sdSet(id string, param string, value string) int32

//go:wasmimport weir_v1 sd_unset
func sdUnset(id string, param string) int32

//go:wasmimport weir_v1 record_get
func recordGet(buf unsafe.Pointer, n uint32) int32

//go:wasmimport weir_v1 record_set
func recordSet(json string) int32

//go:wasmimport weir_v1 emit
func hostEmit(json string) int32

//go:wasmimport weir_v1 route
func hostRoute(name string) int32

//go:wasmimport weir_v1 config_get
func configGet(buf unsafe.Pointer, n uint32) int32

//go:wasmimport weir_v1 log
func hostLog(level int32, text string)

//go:wasmimport weir_v1 log_enabled
func logEnabled(level int32) int32

//go:wasmimport weir_v1 metric_add
func metricAdd(name string, value float64)

//go:wasmimport weir_v1 metric_set
func metricSet(name string, value float64)

//go:wasmimport weir_v1 kv_get
func kvGet(key string, buf unsafe.Pointer, n uint32) int32

//go:wasmimport weir_v1 kv_set
func kvSet(key string, value string, ttl int64) int32

//go:wasmimport weir_v1 kv_del
func kvDel(key string) int32

//go:wasmimport weir_v1 kv_add
func kvAdd(key string, delta int64, out unsafe.Pointer) int32

//go:wasmimport weir_v1 time_now
func timeNow() int64

//go:wasmimport weir_v1 random
func random() int64

//go:wasmimport weir_v1 fail
func fail(text string)
