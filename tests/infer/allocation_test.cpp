// SPDX-License-Identifier: Apache-2.0
// Forward passes after the first allocate no memory.  This program replaces operator new to count allocations.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <latch>
#include <new>

#include "tests/support/golden.h"
#include "tests/support/models.h"
#include "vitrail/base/parallel.h"
#include "vitrail/infer/session.h"
#include "vitrail/kernels/isa/isa.h"
#include "vitrail/models/load.h"

namespace {

std::atomic<int64_t> allocations{0}, deallocations{0};

void* counted_or_null(size_t size, size_t alignment) {
  ++allocations;
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
void* counted(size_t size, size_t alignment) {
  void* const memory = counted_or_null(size, alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void counted_free(void* memory) {
  if (memory) ++deallocations;
  std::free(memory);
}

}  // namespace

// Where only one of a pair is inlined, g++ takes malloc's and operator new's functions for mixed up.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

void* operator new(size_t size) { return counted(size, alignof(std::max_align_t)); }
void* operator new[](size_t size) { return counted(size, alignof(std::max_align_t)); }
// std::stable_sort uses this form.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return counted_or_null(size, alignof(std::max_align_t));
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return counted_or_null(size, alignof(std::max_align_t));
}
void* operator new(size_t size, std::align_val_t alignment) { return counted(size, static_cast<size_t>(alignment)); }
void* operator new[](size_t size, std::align_val_t alignment) { return counted(size, static_cast<size_t>(alignment)); }
void operator delete(void* memory) noexcept { counted_free(memory); }
void operator delete[](void* memory) noexcept { counted_free(memory); }
void operator delete(void* memory, size_t) noexcept { counted_free(memory); }
void operator delete[](void* memory, size_t) noexcept { counted_free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { counted_free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { counted_free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { counted_free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { counted_free(memory); }

namespace vitrail::infer {
namespace {

int64_t allocations_of(const Session& session, int64_t batch, const Request& request) {
  const Tensor images = Tensor::randn({batch, 3, session.config().img_size[0], session.config().img_size[1]}, 1);
  const std::vector<Tensor> results = session.run(images, request);
  // Thread-local memory grows in the first pass of a thread, and the partition of the images differs between runs.
  const ThreadCount threads(session.threads());
  // The latch makes each thread run one of the passes: without it, one thread may run them all.
  std::latch all_threads(session.threads());
  parallel_for(0, session.threads(), 1, [&](int64_t first, int64_t last) {
    all_threads.arrive_and_wait();
    for (; first < last; ++first) session.run(images, request);
  });
  session.run_into(images, request, results);
  const int64_t before = allocations;
  session.run_into(images, request, results);
  return allocations - before;
}

// A oneDNN call allocates a map of its arguments, independent of the batch size.  Only AVX-512 and later use oneDNN.
TEST(Session, ARepeatedForwardPassAllocatesNothing) {
  const kernels::Isa isa = kernels::active_isa();
  if (isa == kernels::Isa::scalar) GTEST_SKIP() << "the scalar kernels allocate";
  for (const auto precision : {kernels::Precision::fp32, kernels::Precision::half, kernels::Precision::int8}) {
    for (int threads = 1; threads <= 2; ++threads) {
      const Session session(testing::model_of("timm_token"), {.threads = threads, .precision = precision});
      for (const Output output : {Output::logits, Output::features, Output::attention}) {
        const Request request{.output = output};
        const int64_t one_image = allocations_of(session, 1, request), many = allocations_of(session, 9, request);
        EXPECT_EQ(one_image, many);
        if (!kernels::features_of(isa).has(kernels::Feature::avx512)) {
          EXPECT_EQ(one_image, 0) << name_of(precision) << ", " << threads << " threads, " << static_cast<int>(output);
        }
      }
    }
  }
}

// A server's clients choose the lists.  The model has no class token, because the address of each constant that is
// concatenated is kept.
TEST(Session, KeepsTheListsOfLayersOfItsProgramsOnly) {
  const Session session(testing::model_of("timm_avg_no_class_token"), {.threads = 1});
  const Tensor images = Tensor::randn({1, 3, 16, 16}, 1);
  const auto run = [&](unsigned first, unsigned last) {  // a list of ten blocks, 0 or 1, for each number
    for (unsigned bits = first; bits < last; ++bits) {
      Request request{.output = Output::features, .features = {.layers = {}}};
      for (int i = 0; i < 10; ++i) request.features.layers.push_back(bits >> i & 1);
      session.run(images, request);
    }
  };
  run(0, 40);  // more than are kept
  const int64_t before = allocations - deallocations;
  run(40, 1000);
  run(0, 40);
  EXPECT_LT(allocations - deallocations, before + 500) << "less than one for each list";
}

TEST(Session, ResultsOfAnotherShapeAreErrors) {
  const Session session(testing::model_of("timm_token"));
  const Tensor images = Tensor::randn({2, 3, 32, 32}, 1);
  EXPECT_ANY_THROW(session.run_into(images, {}, {}));
  EXPECT_ANY_THROW(session.run_into(images, {}, {Tensor::empty({2, 11})}));
  EXPECT_ANY_THROW(session.run_into(images, {}, {Tensor::empty({2, 10}, DType::f64)}));
  EXPECT_ANY_THROW(session.run_into(images, {}, {Tensor::empty({2, 20}).narrow(1, 0, 10)}));
  EXPECT_ANY_THROW(session.run_into(images, {}, {Tensor::empty({10, 2}).transpose(0, 1)}));
  const Tensor result = Tensor::empty({2, 10});
  session.run_into(images, {}, {result});
  EXPECT_TRUE(testing::close(result, session.logits(images), 0));
}

}  // namespace
}  // namespace vitrail::infer
