// SPDX-License-Identifier: Apache-2.0
#pragma once
// A communicator whose processes are threads of the test program, so that tests need no MPI.
#include <algorithm>
#include <barrier>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "vitrail/dist/communicator.h"

namespace vitrail::dist::testing {

class ThreadCommunicator : public Communicator {
 public:
  // What the ranks share.
  struct Shared {
    explicit Shared(int size) : barrier(size), buffers(size) {}
    std::barrier<> barrier;
    std::vector<void*> buffers;  // [rank]: the argument of the current operation
  };
  ThreadCommunicator(std::shared_ptr<Shared> shared, int rank) : shared_(std::move(shared)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(shared_->buffers.size()); }
  void all_reduce_sum(float* data, int64_t n) override { sum(data, n); }
  void all_reduce_sum(double* data, int64_t n) override { sum(data, n); }
  void broadcast(void* data, size_t bytes, int root) override {
    shared_->buffers[rank_] = data;
    barrier();
    if (rank_ != root) std::memcpy(data, shared_->buffers[root], bytes);
    barrier();
  }
  void barrier() override { shared_->barrier.arrive_and_wait(); }
  void finish() override {}

 private:
  template <class T>
  void sum(T* data, int64_t n) {
    shared_->buffers[rank_] = data;
    barrier();
    std::vector<T> total(static_cast<size_t>(n), T(0));
    for (void* other : shared_->buffers) {
      for (int64_t i = 0; i < n; ++i) total[i] += static_cast<T*>(other)[i];
    }
    barrier();
    std::copy(total.begin(), total.end(), data);
  }
  std::shared_ptr<Shared> shared_;
  int rank_;
};

// Calls body(communicator) concurrently for all ranks of a communicator of `size` threads.
inline void run_ranks(int size, const std::function<void(std::shared_ptr<Communicator>)>& body) {
  const auto shared = std::make_shared<ThreadCommunicator::Shared>(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] { body(std::make_shared<ThreadCommunicator>(shared, rank)); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace vitrail::dist::testing
