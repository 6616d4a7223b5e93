// The collectives, as messages between ranks. Each is a loop that every rank of the mesh runs at the same
// time.
//
// Rings (Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009):
// the data is cut into one chunk a rank. In n - 1 steps of reduce-scatter each rank hands a chunk to its
// right neighbour, which adds its own values; then every rank holds one finished chunk. In n - 1 steps of
// all-gather the finished chunks travel once around. Each rank sends 2 (n - 1) / n of the data, whatever n
// is. A chunk is finished in one place and copied from there, so all ranks hold the same bits.
//
// A chunk is added up piece by piece while the rest of it arrives.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker_sdk/src/mesh.hpp"
#include "worker_sdk/src/reduction.hpp"

namespace muster::worker {

/// What all of one operation's messages share. Every function here throws MessageError.
struct Call {
  Mesh& mesh;
  std::uint32_t tag = 0;
  Deadline deadline;
};

/// Whole elements of a buffer: `begin` and `count` in elements.
struct Chunk {
  std::size_t begin = 0;
  std::size_t count = 0;
};

/// `count` elements in `parts` chunks that differ by one element at most.
std::vector<Chunk> even_chunks(std::size_t count, std::size_t parts);

struct Elements {
  std::byte* data = nullptr;
  std::size_t element_bytes = 1;
};

/// Dissemination (Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", 1988).
void barrier(const Call& call);
/// A binomial tree.
void broadcast(const Call& call, Elements elements, std::size_t count, int root);
/// In place.
void all_reduce(const Call& call, Elements elements, std::size_t count, Reduce reduce);
/// `output` has `count` elements, `input` size() times as many.
void reduce_scatter(const Call& call, Elements input, std::byte* output, std::size_t count, Reduce reduce);
/// In place: chunk r is there on rank r and comes to all others.
void all_gather(const Call& call, Elements elements, const std::vector<Chunk>& chunks);
void send(const Call& call, Elements elements, std::size_t count, int destination);
void receive(const Call& call, Elements elements, std::size_t count, int source);

}  // namespace muster::worker
