#include "trainers/cuda/fault.hpp"

#include <fmt/format.h>

namespace muster::trainers::cuda {
namespace {

/// From the sources' root, wherever they were built.
std::string_view short_path(std::string_view file) {
  const auto root = file.rfind("trainers/cuda/");
  return root == std::string_view::npos ? file : file.substr(root);
}

std::string text(const CallSite& site, std::string_view why) {
  return fmt::format("{}: {}: {}, at {}:{}", site.device, site.call.substr(0, site.call.find('(')), why,
                     short_path(site.file), site.line);
}

}  // namespace

Fault fault_of(cudaError_t code, const CallSite& site) {
  if (code == cudaSuccess) return {};
  return text(site, fmt::format("{} ({})", cudaGetErrorString(code), cudaGetErrorName(code)));
}

Fault fault_of(cublasStatus_t code, const CallSite& site) {
  if (code == CUBLAS_STATUS_SUCCESS) return {};
  return text(site, fmt::format("{} ({})", cublasGetStatusString(code), cublasGetStatusName(code)));
}

Fault fault_of(ncclResult_t code, const CallSite& site, ncclComm_t communicator) {
  if (code == ncclSuccess) return {};
  const std::string_view more = ncclGetLastError(communicator);
  return text(site, fmt::format("{}{}{}", ncclGetErrorString(code), more.empty() ? "" : ": ", more));
}

}  // namespace muster::trainers::cuda
