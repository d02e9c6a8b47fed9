// Loaded into a server by NODE_OPTIONS=--import: its wall clock runs TEST_CLOCK_AHEAD_MS ahead, as if the server had
// been off for that long. Monotonic time and timers stay as they are. Only Date.now is moved: the server reads the
// time nowhere else, and signatures are checked against it.
const aheadMs = Number(process.env.TEST_CLOCK_AHEAD_MS ?? 0);
const machineNow = Date.now;
Date.now = () => machineNow() + aheadMs;
