package meter

// imm says what follows an opcode.
type imm byte

const (
	immNone      imm = iota
	immBlock         // block type
	immLabel         // label
	immLabels        // br_table: vector of labels, default label
	immFunc          // function
	immType          // type
	immIndirect      // type, table
	immTag           // tag
	immTry           // block type, vector of catch clauses
	immSelect        // vector of one value type
	immLocal         // local
	immGlobal        // global
	immTable         // table
	immMemory        // alignment, offset
	immZero          // memory 0, in one byte
	immI32           // signed LEB
	immI64           // signed LEB
	immF32           // 4 bytes
	immF64           // 8 bytes
	immRefType       // heap type
	immData          // data segment
	immDataZero      // data segment, memory 0
	immZeroZero      // memory 0, memory 0
	immElem          // element segment
	immElemTable     // element segment, table
	immTables        // table, table
	imm16            // 16 bytes
	immLane          // 1 byte
	immLane16        // 16 bytes, each below 32
	immMemLane       // alignment, offset, 1 byte
)

// instr is one instruction; an empty name marks a number that none has.
type instr struct {
	name string
	imm  imm
}

// Opcodes that the meter treats by name.
const (
	opUnreachable        = 0x00
	opBlock              = 0x02
	opLoop               = 0x03
	opIf                 = 0x04
	opElse               = 0x05
	opThrow              = 0x08
	opThrowRef           = 0x0a
	opEnd                = 0x0b
	opBr                 = 0x0c
	opBrIf               = 0x0d
	opBrTable            = 0x0e
	opReturn             = 0x0f
	opCall               = 0x10
	opCallIndirect       = 0x11
	opReturnCall         = 0x12
	opReturnCallIndirect = 0x13
	opCallRef            = 0x14
	opReturnCallRef      = 0x15
	opDrop               = 0x1a
	opTryTable           = 0x1f
	opLocalGet           = 0x20
	opLocalSet           = 0x21
	opLocalTee           = 0x22
	opGlobalGet          = 0x23
	opGlobalSet          = 0x24
	opMemoryGrow         = 0x40
	opI32Const           = 0x41
	opI64Const           = 0x42
	opF32Const           = 0x43
	opF64Const           = 0x44
	opI32Eq              = 0x46
	opI32LtS             = 0x48
	opI32GtU             = 0x4b
	opI32Add             = 0x6a
	opI32Sub             = 0x6b
	opI32Mul             = 0x6c
	opI32And             = 0x71
	opI32Shl             = 0x74
	opI32ShrU            = 0x76
	opI64Add             = 0x7c
	opI64Sub             = 0x7d
	opI64Mul             = 0x7e
	opRefNull            = 0xd0
	opRefFunc            = 0xd2
	opRefAsNonNull       = 0xd4
	opBrOnNull           = 0xd5
	opBrOnNonNull        = 0xd6
	opMisc               = 0xfc // then a number of miscs
	opSIMD               = 0xfd // then a number of simds

	miscMemoryInit = 0x08
	miscMemoryCopy = 0x0a
	miscMemoryFill = 0x0b
	miscTableInit  = 0x0c
	miscTableCopy  = 0x0e
	miscTableGrow  = 0x0f
	miscTableFill  = 0x11

	simdConst = 0x0c
)

// instrs are the instructions of one byte.
var instrs = [256]instr{
	0x00: {name: "unreachable"},
	0x01: {name: "nop"},
	0x02: {"block", immBlock},
	0x03: {"loop", immBlock},
	0x04: {"if", immBlock},
	0x05: {name: "else"},
	0x08: {"throw", immTag},
	0x0a: {name: "throw_ref"},
	0x0b: {name: "end"},
	0x0c: {"br", immLabel},
	0x0d: {"br_if", immLabel},
	0x0e: {"br_table", immLabels},
	0x0f: {name: "return"},
	0x10: {"call", immFunc},
	0x11: {"call_indirect", immIndirect},
	0x12: {"return_call", immFunc},
	0x13: {"return_call_indirect", immIndirect},
	0x14: {"call_ref", immType},
	0x15: {"return_call_ref", immType},
	0x1a: {name: "drop"},
	0x1b: {name: "select"},
	0x1c: {"select t", immSelect},
	0x1f: {"try_table", immTry},
	0x20: {"local.get", immLocal},
	0x21: {"local.set", immLocal},
	0x22: {"local.tee", immLocal},
	0x23: {"global.get", immGlobal},
	0x24: {"global.set", immGlobal},
	0x25: {"table.get", immTable},
	0x26: {"table.set", immTable},
	0x28: {"i32.load", immMemory},
	0x29: {"i64.load", immMemory},
	0x2a: {"f32.load", immMemory},
	0x2b: {"f64.load", immMemory},
	0x2c: {"i32.load8_s", immMemory},
	0x2d: {"i32.load8_u", immMemory},
	0x2e: {"i32.load16_s", immMemory},
	0x2f: {"i32.load16_u", immMemory},
	0x30: {"i64.load8_s", immMemory},
	0x31: {"i64.load8_u", immMemory},
	0x32: {"i64.load16_s", immMemory},
	0x33: {"i64.load16_u", immMemory},
	0x34: {"i64.load32_s", immMemory},
	0x35: {"i64.load32_u", immMemory},
	0x36: {"i32.store", immMemory},
	0x37: {"i64.store", immMemory},
	0x38: {"f32.store", immMemory},
	0x39: {"f64.store", immMemory},
	0x3a: {"i32.store8", immMemory},
	0x3b: {"i32.store16", immMemory},
	0x3c: {"i64.store8", immMemory},
	0x3d: {"i64.store16", immMemory},
	0x3e: {"i64.store32", immMemory},
	0x3f: {"memory.size", immZero},
	0x40: {"memory.grow", immZero},
	0x41: {"i32.const", immI32},
	0x42: {"i64.const", immI64},
	0x43: {"f32.const", immF32},
	0x44: {"f64.const", immF64},
	0x45: {name: "i32.eqz"},
	0x46: {name: "i32.eq"},
	0x47: {name: "i32.ne"},
	0x48: {name: "i32.lt_s"},
	0x49: {name: "i32.lt_u"},
	0x4a: {name: "i32.gt_s"},
	0x4b: {name: "i32.gt_u"},
	0x4c: {name: "i32.le_s"},
	0x4d: {name: "i32.le_u"},
	0x4e: {name: "i32.ge_s"},
	0x4f: {name: "i32.ge_u"},
	0x50: {name: "i64.eqz"},
	0x51: {name: "i64.eq"},
	0x52: {name: "i64.ne"},
	0x53: {name: "i64.lt_s"},
	0x54: {name: "i64.lt_u"},
	0x55: {name: "i64.gt_s"},
	0x56: {name: "i64.gt_u"},
	0x57: {name: "i64.le_s"},
	0x58: {name: "i64.le_u"},
	0x59: {name: "i64.ge_s"},
	0x5a: {name: "i64.ge_u"},
	0x5b: {name: "f32.eq"},
	0x5c: {name: "f32.ne"},
	0x5d: {name: "f32.lt"},
	0x5e: {name: "f32.gt"},
	0x5f: {name: "f32.le"},
	0x60: {name: "f32.ge"},
	0x61: {name: "f64.eq"},
	0x62: {name: "f64.ne"},
	0x63: {name: "f64.lt"},
	0x64: {name: "f64.gt"},
	0x65: {name: "f64.le"},
	0x66: {name: "f64.ge"},
	0x67: {name: "i32.clz"},
	0x68: {name: "i32.ctz"},
	0x69: {name: "i32.popcnt"},
	0x6a: {name: "i32.add"},
	0x6b: {name: "i32.sub"},
	0x6c: {name: "i32.mul"},
	0x6d: {name: "i32.div_s"},
	0x6e: {name: "i32.div_u"},
	0x6f: {name: "i32.rem_s"},
	0x70: {name: "i32.rem_u"},
	0x71: {name: "i32.and"},
	0x72: {name: "i32.or"},
	0x73: {name: "i32.xor"},
	0x74: {name: "i32.shl"},
	0x75: {name: "i32.shr_s"},
	0x76: {name: "i32.shr_u"},
	0x77: {name: "i32.rotl"},
	0x78: {name: "i32.rotr"},
	0x79: {name: "i64.clz"},
	0x7a: {name: "i64.ctz"},
	0x7b: {name: "i64.popcnt"},
	0x7c: {name: "i64.add"},
	0x7d: {name: "i64.sub"},
	0x7e: {name: "i64.mul"},
	0x7f: {name: "i64.div_s"},
	0x80: {name: "i64.div_u"},
	0x81: {name: "i64.rem_s"},
	0x82: {name: "i64.rem_u"},
	0x83: {name: "i64.and"},
	0x84: {name: "i64.or"},
	0x85: {name: "i64.xor"},
	0x86: {name: "i64.shl"},
	0x87: {name: "i64.shr_s"},
	0x88: {name: "i64.shr_u"},
	0x89: {name: "i64.rotl"},
	0x8a: {name: "i64.rotr"},
	0x8b: {name: "f32.abs"},
	0x8c: {name: "f32.neg"},
	0x8d: {name: "f32.ceil"},
	0x8e: {name: "f32.floor"},
	0x8f: {name: "f32.trunc"},
	0x90: {name: "f32.nearest"},
	0x91: {name: "f32.sqrt"},
	0x92: {name: "f32.add"},
	0x93: {name: "f32.sub"},
	0x94: {name: "f32.mul"},
	0x95: {name: "f32.div"},
	0x96: {name: "f32.min"},
	0x97: {name: "f32.max"},
	0x98: {name: "f32.copysign"},
	0x99: {name: "f64.abs"},
	0x9a: {name: "f64.neg"},
	0x9b: {name: "f64.ceil"},
	0x9c: {name: "f64.floor"},
	0x9d: {name: "f64.trunc"},
	0x9e: {name: "f64.nearest"},
	0x9f: {name: "f64.sqrt"},
	0xa0: {name: "f64.add"},
	0xa1: {name: "f64.sub"},
	0xa2: {name: "f64.mul"},
	0xa3: {name: "f64.div"},
	0xa4: {name: "f64.min"},
	0xa5: {name: "f64.max"},
	0xa6: {name: "f64.copysign"},
	0xa7: {name: "i32.wrap_i64"},
	0xa8: {name: "i32.trunc_f32_s"},
	0xa9: {name: "i32.trunc_f32_u"},
	0xaa: {name: "i32.trunc_f64_s"},
	0xab: {name: "i32.trunc_f64_u"},
	0xac: {name: "i64.extend_i32_s"},
	0xad: {name: "i64.extend_i32_u"},
	0xae: {name: "i64.trunc_f32_s"},
	0xaf: {name: "i64.trunc_f32_u"},
	0xb0: {name: "i64.trunc_f64_s"},
	0xb1: {name: "i64.trunc_f64_u"},
	0xb2: {name: "f32.convert_i32_s"},
	0xb3: {name: "f32.convert_i32_u"},
	0xb4: {name: "f32.convert_i64_s"},
	0xb5: {name: "f32.convert_i64_u"},
	0xb6: {name: "f32.demote_f64"},
	0xb7: {name: "f64.convert_i32_s"},
	0xb8: {name: "f64.convert_i32_u"},
	0xb9: {name: "f64.convert_i64_s"},
	0xba: {name: "f64.convert_i64_u"},
	0xbb: {name: "f64.promote_f32"},
	0xbc: {name: "i32.reinterpret_f32"},
	0xbd: {name: "i64.reinterpret_f64"},
	0xbe: {name: "f32.reinterpret_i32"},
	0xbf: {name: "f64.reinterpret_i64"},
	0xc0: {name: "i32.extend8_s"},
	0xc1: {name: "i32.extend16_s"},
	0xc2: {name: "i64.extend8_s"},
	0xc3: {name: "i64.extend16_s"},
	0xc4: {name: "i64.extend32_s"},
	0xd0: {"ref.null", immRefType},
	0xd1: {name: "ref.is_null"},
	0xd2: {"ref.func", immFunc},
	0xd4: {name: "ref.as_non_null"},
	0xd5: {"br_on_null", immLabel},
	0xd6: {"br_on_non_null", immLabel},
}

// miscs are the instructions behind the prefix 0xfc.
var miscs = [...]instr{
	0x00: {name: "i32.trunc_sat_f32_s"},
	0x01: {name: "i32.trunc_sat_f32_u"},
	0x02: {name: "i32.trunc_sat_f64_s"},
	0x03: {name: "i32.trunc_sat_f64_u"},
	0x04: {name: "i64.trunc_sat_f32_s"},
	0x05: {name: "i64.trunc_sat_f32_u"},
	0x06: {name: "i64.trunc_sat_f64_s"},
	0x07: {name: "i64.trunc_sat_f64_u"},
	0x08: {"memory.init", immDataZero},
	0x09: {"data.drop", immData},
	0x0a: {"memory.copy", immZeroZero},
	0x0b: {"memory.fill", immZero},
	0x0c: {"table.init", immElemTable},
	0x0d: {"elem.drop", immElem},
	0x0e: {"table.copy", immTables},
	0x0f: {"table.grow", immTable},
	0x10: {"table.size", immTable},
	0x11: {"table.fill", immTable},
}
