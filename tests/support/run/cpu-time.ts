// How long this thread has worked: what a computation costs, whatever else the machine does meanwhile.

/** Of its own code and of the kernel for it, ms. */
export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
