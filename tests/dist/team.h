// SPDX-License-Identifier: Apache-2.0
#pragma once
// Processes played by threads: the reducer's logic is tested without MPI.
#include <algorithm>
#include <barrier>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "vitrail/dist/communicator.h"

namespace vitrail::dist::testing {

class TeamMember : public Communicator {
 public:
  struct Team {
    explicit Team(int size) : barrier(size), data(size) {}
    std::barrier<> barrier;
    std::vector<void*> data;
  };
  TeamMember(std::shared_ptr<Team> team, int rank) : team_(std::move(team)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(team_->data.size()); }
  void all_reduce_sum(float* data, int64_t n) override { sum(data, n); }
  void all_reduce_sum(double* data, int64_t n) override { sum(data, n); }
  void broadcast(void* data, size_t bytes, int root) override {
    team_->data[rank_] = data;
    barrier();
    if (rank_ != root) std::memcpy(data, team_->data[root], bytes);
    barrier();
  }
  void barrier() override { team_->barrier.arrive_and_wait(); }
  void finish() override {}

 private:
  template <class T>
  void sum(T* data, int64_t n) {
    team_->data[rank_] = data;
    barrier();
    std::vector<T> total(static_cast<size_t>(n), T(0));
    for (void* other : team_->data) {
      for (int64_t i = 0; i < n; ++i) total[i] += static_cast<T*>(other)[i];
    }
    barrier();
    std::copy(total.begin(), total.end(), data);
  }
  std::shared_ptr<Team> team_;
  int rank_;
};

// body(communicator) as `size` processes at once.
inline void as_team(int size, const std::function<void(std::shared_ptr<Communicator>)>& body) {
  const auto team = std::make_shared<TeamMember::Team>(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] { body(std::make_shared<TeamMember>(team, rank)); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace vitrail::dist::testing
