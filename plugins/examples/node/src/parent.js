// exitWithHost ends this process soon after the one that started it, also where that
// was killed. The environment names it: a parent that is gone already was replaced.
export function exitWithHost(ended = () => process.exit(0)) {
  const host = Number(process.env.GERBANG_HOST_PID) || process.ppid;
  setInterval(() => {
    if (process.ppid !== host) ended();
  }, 250).unref();
}
