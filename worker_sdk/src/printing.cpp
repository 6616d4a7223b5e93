#include "muster/worker/printing.hpp"

#include "base/standard_output.hpp"

namespace muster::worker {

bool flush_standard_output(std::string_view program) { return muster::flush_standard_output(program); }

}  // namespace muster::worker
