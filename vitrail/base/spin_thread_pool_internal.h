// SPDX-License-Identifier: Apache-2.0
#pragma once
// Threads that wait awake for the loops of one of them, the leader: two trips between cores a loop, where OpenMP takes
// about eight.  Private to base: who runs loops says with_spin_thread_pool() (parallel.h).
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace vitrail {

class SpinThreadPool {
 public:
  // Nobody has come yet.  Between one team's end and the next begin() no member may be inside serve().
  void begin(int threads);
  int threads() const { return threads_; }

  // For members 1, 2, …: comes, works and returns when dismissed.
  void serve(int member);

  // For the leader.  run(piece) for all pieces below `pieces` ≤ threads(), which does not throw: piece p by member p
  // if it has come, by the leader otherwise.
  template <class Run>
  void run(int64_t pieces, const Run& run) {
    for (int64_t p = 1; p < pieces; ++p) {
      desks_[p].busy = desks_[p].here.load(std::memory_order_acquire);
      if (desks_[p].busy) {
        hand(
            desks_[p], [](const void* what, int64_t piece) { (*static_cast<const Run*>(what))(piece); }, &run);
      }
    }
    run(0);
    for (int64_t p = 1; p < pieces; ++p) {
      if (!desks_[p].busy) run(p);
    }
    for (int64_t p = 1; p < pieces; ++p) wait_for(desks_[p]);
  }
  void dismiss();

 private:
  using Work = void (*)(const void* what, int64_t piece);
  static constexpr size_t kLines = 128;  // processors fetch lines in pairs
  struct Desk {
    alignas(kLines) std::atomic<uint64_t> handed = 0;  // by the leader: how many pieces of work, of which this is one
    Work work = nullptr;                               // null: dismissed
    const void* what = nullptr;
    bool busy = false;
    alignas(kLines) std::atomic<uint64_t> done = 0;  // by the member
    std::atomic<bool> here = false;
  };

  static void hand(Desk& desk, Work work, const void* what);
  static void wait_for(const Desk& desk);

  int threads_ = 1;
  std::vector<Desk> desks_;  // kept from team to team; the leader's own, 0, is not used
};

}  // namespace vitrail
