// What `ps`, `pkill` and /proc call this process.
#pragma once

namespace muster::agent {

/// Both names: the short one (`pkill NAME`) and the command line (`pkill -f NAME`), whose words all go. A name longer
/// than the command line was is cut there, and at 15 bytes in the short one. For a process that was forked and goes on
/// without an exec; allocates nothing. Where /proc is missing the command line stays.
void name_this_process(const char* name);

}  // namespace muster::agent
