// When a call may be sent at the latest, by clocks that nobody sets.
import os from 'node:os';

const milliseconds = ({ seconds, nanos }) => seconds * 1000 + nanos / 1e6;

// The machine's uptime (CLOCK_BOOTTIME) goes on while it sleeps, and Node reads it in
// whole seconds where /proc is closed to it. What performance.now() is behind it is
// known better with each look; the uptime is never taken for less than it is.
let least = -Infinity;
let most = Infinity;

function look() {
  const uptime = os.uptime();
  const behind = uptime * 1000 - performance.now();
  if (behind > most) [least, most] = [-Infinity, Infinity]; // the machine slept
  least = Math.max(least, behind);
  most = Math.min(most, behind + (Number.isInteger(uptime) ? 1000 : 10));
}

function uptime() {
  look();
  return performance.now() + most;
}

const first = setInterval(look, 20).unref();
setTimeout(() => clearInterval(first), 1100).unref();

// deadline gives the moment of performance.now() after which nothing of a call may be
// sent any more, Infinity where the gateway names none.
export function deadline({ send_within: within, send_by_uptime: byUptime, send_by: sendBy }) {
  if (within === null) return sendBy === null ? Infinity : performance.now() + milliseconds(sendBy) - Date.now();
  let left = milliseconds(within);
  if (byUptime !== null && process.platform === 'linux') left = Math.min(left, milliseconds(byUptime) - uptime());
  return performance.now() + left;
}
