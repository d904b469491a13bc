export * from "./generated.js";
export { Client, GerbangError, NoAnswer, type Options, type Result, type Settings } from "./client.js";
export { verifyCallback, CallbackError, type Callback } from "./callback.js";
