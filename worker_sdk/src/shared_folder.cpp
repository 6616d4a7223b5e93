#include "worker_sdk/src/shared_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <thread>

#include "base/unique_fd.hpp"
#include "worker_sdk/src/checkpoint_folder.hpp"
#include "worker_sdk/src/group_texts.hpp"
#include "worker_sdk/src/rank_names.hpp"

namespace muster::worker {
namespace {

namespace fs = std::filesystem;

constexpr const char* what_is_needed = "all ranks must see the same folder (a shared disk)";

/// Nobody tells when another machine's file comes into sight.
constexpr int max_looks = 10;
constexpr std::chrono::milliseconds between_looks{100};

struct Sight {
  int error = 0;  ///< why there is none
  std::uint64_t size_bytes = 0;
};

/// A network file system asks its server when the folder and the file are opened, not when they are looked up.
Sight look(const fs::path& folder, const std::string& name) {
  const UniqueFd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened) return {.error = errno};
  struct stat status {};
  const UniqueFd file(::openat(opened.get(), name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  // A file that is not this process's to read is there all the same.
  const int result = file ? ::fstat(file.get(), &status) : ::fstatat(opened.get(), name.c_str(), &status, 0);
  if (result != 0) return {.error = errno};
  return {.size_bytes = static_cast<std::uint64_t>(status.st_size)};
}

/// The last of several looks, or the first with which `accept` is content.
Sight look_until(const fs::path& folder, const std::string& name, const auto& accept) {
  for (int looks = 1;; ++looks) {
    const auto sight = look(folder, name);
    if (looks == max_looks || accept(sight)) return sight;
    std::this_thread::sleep_for(between_looks);
  }
}

bool is_not_there(const Sight& sight) { return sight.error == ENOENT || sight.error == ENOTDIR; }

/// A file under a name that nobody has looked for yet; gone with its owner, or with the run's leftovers.
class Mark {
 public:
  Mark(const fs::path& folder, std::int64_t generation) {
    std::random_device random;
    const auto number = (std::uint64_t{random()} << 32) | random();
    auto name = temporary_mark_name(number, generation);
    const auto path = folder / name;
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!fd) return;
    path_ = path;
    name_ = std::move(name);
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark() {
    std::error_code ignored;  // it is of no worth, and goes with the leftovers
    if (!path_.empty()) fs::remove(path_, ignored);
  }
  const std::string& name() const { return name_; }  ///< empty: it could not be made

 private:
  fs::path path_;
  std::string name_;
};

}  // namespace

std::string missing_part(const fs::path& checkpoint, const IndexedPart& part, int writer) {
  const auto sight = look_until(checkpoint, part.file, [&](const Sight& seen) {
    return seen.error == 0 && seen.size_bytes == part.bytes;
  });
  const auto folder = checkpoint.parent_path().string();
  if (sight.error != 0)
    return fmt::format("rank {}'s part {} is not in {} as rank 0 sees it: {}", writer, part.file, folder,
                       what_is_needed);
  if (sight.size_bytes != part.bytes)
    return fmt::format("rank {}'s part {} has {} of {} bytes in {} as rank 0 sees it: {}", writer, part.file,
                       sight.size_bytes, part.bytes, folder, what_is_needed);
  return {};
}

std::string why_not_shared(ProcessGroup& group, const fs::path& folder, std::int64_t generation, bool looks) {
  std::optional<Mark> mark;
  if (group.rank() == 0) mark.emplace(folder, generation);
  const auto name = broadcast_text(group, mark ? mark->name() : std::string(), 0);
  if (name.empty()) return {};
  std::vector<std::int64_t> apart(static_cast<std::size_t>(group.size()));
  if (looks) {
    const auto sight = look_until(folder, name, [](const Sight& seen) { return seen.error == 0; });
    apart[static_cast<std::size_t>(group.rank())] = is_not_there(sight) ? 1 : 0;
  }
  group.all_reduce(buffer_of(std::span(apart)), ReduceOp::sum)->wait();
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < apart.size(); ++rank)
    if (apart[rank] != 0) ranks.push_back(static_cast<int>(rank));
  if (ranks.empty()) return {};
  return fmt::format("{}: {} {} not see what rank 0 writes there: {}", folder.string(), ranks_text(ranks),
                     ranks.size() == 1 ? "does" : "do", what_is_needed);
}

}  // namespace muster::worker
