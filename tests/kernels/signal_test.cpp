// SPDX-License-Identifier: Apache-2.0
// Signal handlers run on the stack of the thread while it computes.  oneDNN's generated code may use other memory as
// its stack, which is too small for the frame of a handler.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <stdexcept>

#include "tests/kernels/linear_problem.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/linear.h"

namespace vitrail::kernels {
namespace {

uintptr_t stack_begin, stack_end;
std::atomic<int> on_stack, elsewhere;

extern "C" void count_signal(int) {
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  ++(frame >= stack_begin && frame < stack_end ? on_stack : elsewhere);
}

void read_stack_bounds() {
  pthread_attr_t attributes;
  void* begin = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
  pthread_attr_getstack(&attributes, &begin, &bytes);
  pthread_attr_destroy(&attributes);
  stack_begin = reinterpret_cast<uintptr_t>(begin);
  stack_end = stack_begin + bytes;
}

// Sends SIGALRM to the calling thread every 500 µs.
class Timer {
 public:
  Timer() {
    struct sigaction action {};
    action.sa_handler = count_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGALRM, &action, &before_);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGALRM;
    event._sigev_un._tid = ::gettid();
    const itimerspec interval{{0, 500'000}, {0, 500'000}};
    if (::timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) throw std::runtime_error("timer_create");
    ::timer_settime(timer_, 0, &interval, nullptr);
  }
  ~Timer() {
    ::timer_delete(timer_);
    ::sigaction(SIGALRM, &before_, nullptr);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  struct sigaction before_ {};
  timer_t timer_{};
};

template <class Compute>
void expect_handlers_on_the_stack(const char* name, const Compute& compute) {
  on_stack = elsewhere = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const Timer timer;
  while (on_stack + elsewhere < 30 && std::chrono::steady_clock::now() < end) compute();
  EXPECT_GT(on_stack, 0) << name;
  EXPECT_EQ(elsewhere, 0) << name;
}

TEST(Signals, HandlersDuringAGemmRunOnTheStackOfTheThread) {
  read_stack_bounds();
  constexpr int64_t kSize = 576;
  const testing::Problem problem(kSize, kSize, kSize);
  std::vector<float> y(kSize * kSize);
  const ThreadCount one(1);
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      expect_handlers_on_the_stack("gemm", [&] {
        gemm(transpose_a, transpose_b, kSize, kSize, kSize, problem.x.data(), kSize, problem.weight.data(), kSize, true,
             y.data(), kSize);
      });
    }
  }
  if (multiplies_bf16()) {
    const std::vector<BFloat16> x(kSize * kSize, BFloat16(1.0f));
    expect_handlers_on_the_stack("gemm in bf16", [&] {
      gemm(false, true, kSize, kSize, kSize, x.data(), kSize, x.data(), kSize, nullptr, y.data(), kSize);
    });
  }
  const PackedLinear packed(problem.weight.data(), problem.bias.data(), kSize, kSize);
  testing::Scratch scratch(packed.scratch_bytes({.count = kSize}));
  expect_handlers_on_the_stack("packed linear", [&] {
    packed.run({problem.x.data(), kSize}, {y.data(), kSize}, {.count = kSize}, {}, scratch.aligned());
  });
}

}  // namespace
}  // namespace vitrail::kernels
