// What weir calls. A filter has the line: export * from "weir/exports";
export { weir_init, weir_process, weir_tick, weir_close } from "./filter";
