// SPDX-License-Identifier: Apache-2.0
// The graph and the engine: recording, accumulation, memory and errors.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/autograd/checkpoint.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/gradient_check.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::autograd {
namespace {

Tensor leaf(const Shape& shape, uint64_t seed, DType dtype = DType::f64) {
  Tensor t = Tensor::randn(shape, seed, dtype);
  set_requires_grad(t, true);
  return t;
}

TEST(Graph, GradientsAccumulateOverUsesAndCalls) {
  const Tensor x = leaf({2, 3}, 1);
  const Tensor twice = ops::residual_add(x, x), four = ops::residual_add(twice, twice);
  backward(four, Tensor::full({2, 3}, 1, DType::f64), {.keep_graph = true});
  EXPECT_TRUE(testing::close(grad_of(x), Tensor::full({2, 3}, 4), 0));
  backward(four, Tensor::full({2, 3}, 1, DType::f64));
  EXPECT_TRUE(testing::close(grad_of(x), Tensor::full({2, 3}, 8), 0));
  clear_grad(x);
  EXPECT_FALSE(grad_of(x).defined());
}

TEST(Checkpoint, GivesTheGradientsOfThePlainFunction) {
  const Tensor x = leaf({2, 3}, 1), w = leaf({4, 3}, 2), grad = Tensor::randn({2, 4}, 3, DType::f64);
  const auto function = [&](const Tensor& in) { return ops::linear(ops::mul(in, in), w, {}); };
  backward(function(x), grad);
  const Tensor of_x = grad_of(x).clone(), of_w = grad_of(w).clone();
  clear_grad(x), clear_grad(w);
  backward(checkpoint(function, x), grad);
  EXPECT_TRUE(testing::close(grad_of(x), of_x, 0));
  EXPECT_TRUE(testing::close(grad_of(w), of_w, 0));
}

// A frozen part, whose result does not depend on x.
TEST(Checkpoint, OfAPartWithoutGradientsHasNone) {
  const Tensor x = leaf({2, 3}, 1), y = leaf({2, 3}, 2);
  const Tensor frozen = checkpoint([](const Tensor& in) { return in.detach(); }, x);
  backward(ops::add(frozen, y), Tensor::full({2, 3}, 1, DType::f64));
  EXPECT_FALSE(grad_of(x).defined());
  EXPECT_TRUE(testing::close(grad_of(y), Tensor::full({2, 3}, 1, DType::f64), 0));
}

TEST(Gradients, AreThoseOfLeavesAndOfResults) {
  const Tensor x = leaf({2, 3}, 1), w = leaf({4, 3}, 2), unused = leaf({2}, 3);
  const Tensor grad = Tensor::randn({2, 4}, 3, DType::f64), square = ops::mul(x, x);
  const std::vector<Tensor> found = gradients(ops::linear(square, w, {}), {x, square, unused, x.detach()}, grad);
  EXPECT_FALSE(grad_of(x).defined() || grad_of(w).defined());
  const Tensor of_square = ops::matmul(grad, w.detach());
  EXPECT_TRUE(testing::close(found[1], of_square, 1e-12));
  EXPECT_TRUE(
      testing::close(found[0], ops::mul(ops::mul(of_square, x.detach()), Tensor::full({1}, 2, DType::f64)), 1e-12));
  EXPECT_FALSE(found[2].defined() || found[3].defined());
}

// A gradient that is returned is not the memory into which a later node adds.
TEST(Gradients, OfAResultStayWhenTheyFlowOn) {
  const Tensor x = leaf({2, 3}, 1), inner = ops::mul(x, x), passed = ops::add(inner, x);
  const std::vector<Tensor> found = gradients(passed, {passed, inner, x}, Tensor::full({2, 3}, 1, DType::f64));
  EXPECT_TRUE(testing::close(found[0], Tensor::full({2, 3}, 1, DType::f64), 0));
  EXPECT_TRUE(testing::close(found[1], Tensor::full({2, 3}, 1, DType::f64), 0));
  const Tensor one = Tensor::full({1}, 1, DType::f64);
  EXPECT_TRUE(testing::close(found[2], ops::add(ops::mul(x.detach(), Tensor::full({1}, 2, DType::f64)), one), 1e-12));
}

TEST(Graph, RunsOnceUnlessItIsKept) {
  const Tensor x = leaf({1, 3}, 1), w = leaf({1, 3}, 2);
  const Tensor out = ops::linear(x, w, {});
  backward(out);
  EXPECT_THROW(backward(out), Error);
}

TEST(Graph, SavedTensorsAreFreedWhenTheirNodeHasRun) {
  const Tensor x = leaf({2, 3}, 1);
  Tensor inner = ops::activation(x, kernels::Activation::gelu);
  const Tensor out = ops::activation(inner, kernels::Activation::gelu);  // saves inner's memory
  const std::weak_ptr<Storage> watched = inner.storage();
  inner = {};
  EXPECT_FALSE(watched.expired());
  backward(out, Tensor::full({2, 3}, 1, DType::f64));
  EXPECT_TRUE(watched.expired()) << "although `out` still exists";
}

TEST(Graph, LeavesReportWhenTheirGradientIsFinal) {
  const Tensor x = leaf({1, 3}, 1), first = leaf({3, 3}, 2), second = leaf({1, 3}, 3);
  const Tensor out = ops::linear(ops::linear(ops::linear(x, first, {}), first, {}), second, {});
  std::vector<Variable*> order;
  backward(out, {}, {.on_leaf = [&](Variable& variable) {
             EXPECT_TRUE(variable.grad.defined());
             order.push_back(&variable);
           }});
  EXPECT_EQ(order, (std::vector<Variable*>{variable_of(second).get(), variable_of(first).get(), variable_of(x).get()}))
      << "late layers first, and once although `first` is used twice";
}

TEST(Graph, ALossOfOneElementNeedsNoGradient) {
  const Tensor x = leaf({1, 3}, 1), w = leaf({1, 3}, 2);
  backward(ops::linear(x, w, {}));
  EXPECT_TRUE(testing::close(grad_of(w), x, 0));
  EXPECT_TRUE(testing::close(grad_of(x), w, 0));
}

TEST(Graph, BackwardRejectsBadRootsAndGradients) {
  const Tensor x = leaf({2, 3}, 1), w = leaf({4, 3}, 2);
  const Tensor out = ops::linear(x, w, {});
  EXPECT_THROW(backward(out), Error);                                     // eight elements, no gradient
  EXPECT_THROW(backward(out, Tensor::zeros({2, 3}, DType::f64)), Error);  // another shape
  EXPECT_THROW(backward(Tensor::zeros({1})), Error);                      // requires no gradient
  EXPECT_FALSE(grad_of(x).defined());
}

TEST(Graph, ALeafsGradientIsNeverTheCallersTensor) {
  const Tensor x = leaf({2}, 1), y = leaf({2}, 2);
  const Tensor incoming = Tensor::full({2}, 1, DType::f64);
  backward(ops::residual_add(x, y), incoming);
  EXPECT_NE(grad_of(x).storage(), incoming.storage());
  backward(x, incoming);  // a leaf is a graph too
  EXPECT_TRUE(testing::close(grad_of(x), Tensor::full({2}, 2), 0));
}

TEST(Graph, NothingIsRecordedIfNoInputRequiresAGradient) {
  const Tensor x = Tensor::randn({2, 3}, 1), w = Tensor::randn({4, 3}, 2);
  EXPECT_EQ(ops::linear(x, w, {}).autograd(), nullptr);
  EXPECT_EQ(ops::layer_norm(x, {}, {}, 1e-6).autograd(), nullptr);
  EXPECT_EQ(ops::residual_add(x, x).autograd(), nullptr);
}

TEST(Graph, NothingIsRecordedUnderNoGrad) {
  const Tensor x = leaf({2, 3}, 1);
  {
    const NoGrad outer;
    { const NoGrad inner; }
    EXPECT_FALSE(grad_enabled());
    EXPECT_EQ(ops::residual_add(x, x).autograd(), nullptr);
    EXPECT_EQ(x.transpose(0, 1).autograd(), nullptr);
  }
  EXPECT_TRUE(grad_enabled());
  EXPECT_TRUE(requires_grad(ops::residual_add(x, x)));
}

TEST(Graph, OnlyInputsThatRequireAGradientGetOne) {
  const Tensor x = leaf({2, 3}, 1);
  Tensor w = leaf({4, 3}, 2);
  set_requires_grad(w, false);
  const Tensor out = ops::linear(x, w, {});
  EXPECT_EQ(variable_of(out)->producer->name, "linear");
  EXPECT_EQ(variable_of(out)->producer->inputs[1], nullptr);
  backward(out, Tensor::full({2, 4}, 1, DType::f64));
  EXPECT_TRUE(grad_of(x).defined());
  EXPECT_FALSE(grad_of(w).defined());
}

TEST(Graph, GradientsOfIntermediateResultsAreFreed) {
  const Tensor x = leaf({2, 3}, 1);
  const Tensor inner = ops::layer_norm(x, {}, {}, 1e-6), out = ops::residual_add(inner, inner);
  backward(out, Tensor::randn({2, 3}, 3, DType::f64));
  EXPECT_TRUE(grad_of(x).defined());
  EXPECT_FALSE(grad_of(inner).defined());
  EXPECT_FALSE(grad_of(out).defined());
}

// Gradients add up over uses and calls, as torch.Tensor.retain_grad does.
TEST(RetainGrad, KeepsTheGradientOfAResult) {
  const Tensor x = leaf({2, 3}, 1), w = leaf({4, 3}, 2), grad = Tensor::randn({2, 4}, 3, DType::f64);
  const Tensor square = ops::mul(x, x), twice = ops::add(square, square), root = ops::linear(twice, w, {});
  retain_grad(square);
  retain_grad(x);  // changes nothing of a leaf
  backward(root, grad, {.keep_graph = true});
  const Tensor want = ops::mul(ops::matmul(grad, w.detach()), Tensor::full({1}, 2, DType::f64));
  EXPECT_TRUE(testing::close(grad_of(square), want, 1e-12));
  EXPECT_FALSE(grad_of(twice).defined());
  const Tensor of_x = ops::mul(ops::mul(want, x.detach()), Tensor::full({1}, 2, DType::f64));
  EXPECT_TRUE(testing::close(grad_of(x), of_x, 1e-12));
  backward(root, grad);
  EXPECT_TRUE(testing::close(grad_of(square), ops::add(want, want), 1e-12));
  clear_grad(square);
  EXPECT_FALSE(grad_of(square).defined());
}

// `sum` passes its gradient on to both inputs, and `product` adds to that of x in place.
TEST(RetainGrad, IsNotTheMemoryIntoWhichALaterNodeAdds) {
  const Tensor x = leaf({2, 3}, 1), product = ops::mul(x, x), sum = ops::add(product, x);
  retain_grad(sum), retain_grad(product);
  const Tensor grad = Tensor::full({2, 3}, 1, DType::f64);
  backward(sum, grad);
  EXPECT_TRUE(testing::close(grad_of(sum), Tensor::full({2, 3}, 1, DType::f64), 0));
  EXPECT_TRUE(testing::close(grad_of(product), Tensor::full({2, 3}, 1, DType::f64), 0));
  EXPECT_NE(grad_of(sum).storage(), grad.storage());
  EXPECT_NE(grad_of(sum).storage(), grad_of(product).storage());
}

TEST(RetainGrad, OfATensorWithoutAGradientIsAnError) {
  EXPECT_ERROR(testing::error_of([] { retain_grad(Tensor::zeros({2})); }), "retain_grad", "one that does not");
}

TEST(Graph, DestroyingTheResultFreesIt) {
  const Tensor x = leaf({2, 3}, 1);
  Tensor inner = ops::layer_norm(x, {}, {}, 1e-6);
  Tensor out = ops::residual_add(inner, inner);
  const std::weak_ptr<Variable> watched = variable_of(inner);
  inner = {};
  EXPECT_FALSE(watched.expired()) << "the graph owns it";
  out = {};
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(variable_of(x).use_count(), 2);  // owned by x and by this handle
}

// Builds, runs and frees a chain of 50000 nodes, and a graph in which every node is two inputs of the next one.
void* deep_graph(void*) {
  const Tensor x = leaf({1}, 1);
  const Tensor zero = Tensor::zeros({1}, DType::f64);
  Tensor chain = x, forked = x;
  for (int i = 0; i < 50000; ++i) chain = ops::residual_add(chain, zero);
  for (int i = 0; i < 20000; ++i) forked = ops::residual_add(forked, forked, zero);
  backward(chain);
  backward(forked);
  EXPECT_TRUE(testing::close(grad_of(x), Tensor::full({1}, 2), 0));
  chain = {};
  forked = {};
  EXPECT_EQ(variable_of(x).use_count(), 2);
  return nullptr;
}

TEST(Graph, DepthIsNotLimitedByTheStack) {
  pthread_attr_t attributes;  // a thread with a stack of 512 KiB, because the main thread's stack may be unlimited
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 512 << 10), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, deep_graph, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(Graph, ContiguousReturnsAContiguousTensorWithItsGradient) {
  const Tensor x = leaf({2, 3}, 1);
  backward(ops::residual_add(ops::contiguous(x), x), Tensor::full({2, 3}, 1, DType::f64));
  EXPECT_TRUE(testing::close(grad_of(x), Tensor::full({2, 3}, 2), 0));
}

TEST(Graph, OnlyFloatingTensorsCanRequireGradients) {
  Tensor integers = Tensor::zeros({2}, DType::i64);
  EXPECT_THROW(set_requires_grad(integers, true), Error);
  EXPECT_NO_THROW(set_requires_grad(integers, false));
}

TEST(Checkpoint, RecordsNothingUnderNoGrad) {
  const Tensor x = leaf({2, 3}, 1);
  const NoGrad scope;
  const Tensor out = checkpoint([](const Tensor& in) { return ops::mul(in, in); }, x);
  EXPECT_FALSE(requires_grad(out));
  EXPECT_TRUE(testing::close(out, ops::mul(x, x), 0));
}

// The recomputed input is no leaf of the user's.
TEST(Checkpoint, ReportsTheLeavesOfItsPart) {
  const Tensor x = leaf({2, 3}, 1), w = leaf({4, 3}, 2);
  std::vector<Variable*> order;
  backward(checkpoint([&](const Tensor& in) { return ops::linear(ops::mul(in, in), w, {}); }, x),
           Tensor::full({2, 4}, 1, DType::f64), {.on_leaf = [&](Variable& variable) { order.push_back(&variable); }});
  EXPECT_EQ(order, (std::vector<Variable*>{variable_of(w).get(), variable_of(x).get()}));
  backward(ops::mul(x, x), Tensor::full({2, 3}, 1, DType::f64));
  EXPECT_EQ(order.size(), 2u) << "the callback is that of one pass";
}

// A leaf that two parts and an operation outside of them read is reported once, with its whole gradient.
TEST(Checkpoint, ALeafOfSeveralPartsIsReportedWhenItsGradientIsFinal) {
  const Tensor x = leaf({2, 3}, 1), w = leaf({3, 3}, 2), v = leaf({3, 3}, 3);
  const auto twice = [&](bool recompute) {
    const auto first = [&](const Tensor& in) { return ops::linear(in, w, {}); };
    const auto second = [&, shared = ops::mul(w, w)](const Tensor& in) {
      return ops::linear(ops::linear(in, shared, {}), v, {});
    };
    Tensor out = recompute ? checkpoint(second, checkpoint(first, x)) : second(first(x));
    return ops::linear(out, w, {});
  };
  const Tensor ones = Tensor::full({2, 3}, 1, DType::f64);
  backward(twice(false), ones);
  const Tensor want = grad_of(w).clone();
  for (const Tensor& tensor : {x, w, v}) clear_grad(tensor);
  std::vector<Variable*> order;
  backward(twice(true), ones, {.on_leaf = [&](Variable& variable) {
             order.push_back(&variable);
             if (&variable == variable_of(w).get()) {
               EXPECT_TRUE(testing::close(variable.grad, want, 1e-12));
             }
           }});
  EXPECT_EQ(order, (std::vector<Variable*>{variable_of(v).get(), variable_of(w).get(), variable_of(x).get()}));
}

TEST(Checkpoint, IsAPlainCallIfNothingRequiresAGradient) {
  const Tensor x = Tensor::randn({2, 3}, 1, DType::f64), w = Tensor::randn({4, 3}, 2, DType::f64);
  int calls = 0;
  const Tensor out = checkpoint(
      [&](const Tensor& in) {
        ++calls;
        return ops::linear(in, w, {});
      },
      x);
  EXPECT_FALSE(requires_grad(out));
  EXPECT_EQ(calls, 1);
}

TEST(Checkpoint, OfAnInputWithoutGradientGivesThoseOfItsParameters) {
  const Tensor x = Tensor::randn({2, 3}, 1, DType::f64), w = leaf({4, 3}, 2), y = leaf({2, 4}, 3);
  const auto function = [&](const Tensor& in) { return ops::linear(in, w, {}); };
  backward(ops::add(checkpoint(function, x), y), Tensor::full({2, 4}, 1, DType::f64));
  const Tensor got = grad_of(w).clone();
  clear_grad(w);
  backward(function(x), Tensor::full({2, 4}, 1, DType::f64));
  EXPECT_TRUE(testing::close(got, grad_of(w), 0));
}

TEST(Graph, NodesReportTheirNamesInTheOrderOfTheBackwardPass) {
  const Tensor x = leaf({2, 3}, 1), w = leaf({4, 3}, 2);
  std::vector<std::string> names;
  backward(ops::activation(ops::linear(x, w, {}), kernels::Activation::gelu), Tensor::full({2, 4}, 1, DType::f64),
           {.on_node = [&](const std::string& name, double seconds) {
             EXPECT_GE(seconds, 0);
             names.push_back(name);
           }});
  EXPECT_EQ(names, (std::vector<std::string>{"activation", "linear"}));
}

TEST(Graph, AGradientOfAnotherShapeOfAsManyElementsIsAnError) {
  const Tensor x = leaf({2, 3}, 1);
  const Tensor out = ops::mul(x, x);
  EXPECT_THROW(backward(out, Tensor::zeros({3, 2}, DType::f64)), Error);
  EXPECT_THROW(backward(out, Tensor::zeros({6}, DType::f64)), Error);
  EXPECT_THROW(backward(x, Tensor::zeros({3, 2}, DType::f64)), Error) << "of a leaf";
  EXPECT_NO_THROW(backward(out, Tensor::zeros({2, 3}, DType::f64))) << "the refused calls changed nothing";
}

// Half precisions are added in single precision and rounded once.
TEST(Graph, GradientsAccumulateInTheDtypeOfTheLeaf) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Tensor x = leaf({40}, 1, dtype);
    const Tensor first = Tensor::randn({40}, 2, dtype), second = Tensor::randn({40}, 3, dtype);
    backward(ops::residual_add(x, x), first);
    backward(ops::residual_add(x, x), second);
    ASSERT_EQ(grad_of(x).dtype(), dtype);
    const auto sum = [dtype](const Tensor& a, const Tensor& b) {
      return ops::add(a.to(DType::f32), b.to(DType::f32)).to(dtype);
    };
    EXPECT_TRUE(testing::close(grad_of(x), sum(sum(first, first), sum(second, second)), 0)) << name_of(dtype);
  }
}

TEST(Graph, GradModeIsThatOfTheInnermostScopeAndOfItsThread) {
  EXPECT_TRUE(grad_enabled());
  const NoGrad off;
  {
    const GradMode on(true);
    EXPECT_TRUE(grad_enabled());
  }
  EXPECT_FALSE(grad_enabled());
  bool of_other_thread = false;
  std::thread([&] { of_other_thread = grad_enabled(); }).join();
  EXPECT_TRUE(of_other_thread);
}

TEST(Graph, TensorsWithoutAVariableHaveNoGradient) {
  Tensor x = Tensor::zeros({2});
  EXPECT_EQ(variable_of(x), nullptr);
  EXPECT_FALSE(requires_grad(x));
  EXPECT_FALSE(grad_of(x).defined());
  clear_grad(x);
  set_requires_grad(x, false);
  EXPECT_FALSE(requires_grad(x));
  EXPECT_FALSE(recording({x}));
  set_requires_grad(x, true);
  EXPECT_TRUE(recording({Tensor(), x}));
}

TEST(GradientCheck, FindsAWrongGradient) {
  // x + x, with a backward function that returns 3 instead of 2.
  const auto wrong = [](const std::vector<Tensor>& in) {
    Tensor out;
    {
      const NoGrad scope;
      out = ops::add(in[0], in[0]);
    }
    if (recording(in)) {
      record(out, "wrong", in,
             [](const Tensor& grad) { return std::vector<Tensor>{ops::mul(grad, Tensor::full({1}, 3, DType::f64))}; });
    }
    return out;
  };
  const GradientCheck check = check_gradients(wrong, {Tensor::randn({3}, 1, DType::f64)});
  EXPECT_GT(check.worst, 0.1);
  EXPECT_EQ(check.input, 0);
  EXPECT_THROW(check_gradients(wrong, {Tensor::randn({3}, 1)}), Error);  // f32
}

// x² with one element of its gradient replaced.
Tensor with_wrong_element(const std::vector<Tensor>& in, int64_t element, double wrong) {
  Tensor out;
  {
    const NoGrad scope;
    out = ops::mul(in[0], in[0]);
  }
  if (recording(in)) {
    record(out, "wrong", in, [x = in[0].detach(), element, wrong](const Tensor& grad) {
      Tensor result = ops::mul(ops::add(x, x), grad);
      result.data<double>()[element] = wrong;
      return std::vector<Tensor>{result};
    });
  }
  return out;
}

// NaN compares with nothing: neither the elements before nor those after it may hide it.
TEST(GradientCheck, FindsAGradientThatIsNotANumber) {
  for (const double wrong : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    for (int64_t element = 0; element < 4; ++element) {
      const GradientCheck check =
          check_gradients([&](const std::vector<Tensor>& in) { return with_wrong_element(in, element, wrong); },
                          {Tensor::randn({4}, 1, DType::f64)});
      EXPECT_FALSE(check.worst < 1e-3) << element;
      EXPECT_EQ(check.element, element);
    }
  }
}

TEST(GradientCheck, NamesTheWorstElement) {
  for (int64_t element = 0; element < 4; ++element) {
    const GradientCheck check =
        check_gradients([&](const std::vector<Tensor>& in) { return with_wrong_element(in, element, 100); },
                        {Tensor::randn({4}, 1, DType::f64)});
    EXPECT_EQ(check.input, 0);
    EXPECT_EQ(check.element, element);
    EXPECT_EQ(check.analytic, 100);
    EXPECT_NEAR(check.worst, std::abs(check.numerical - 100) / 100, 1e-12);
  }
}

TEST(GradientCheck, AFunctionThatLeavesAnInputOutIsAnError) {
  const auto first = [](const std::vector<Tensor>& in) { return ops::mul(in[0], in[0]); };
  const Tensor x = Tensor::randn({2}, 1, DType::f64);
  EXPECT_LT(check_gradients(first, {x}).worst, 1e-8);
  EXPECT_THROW(check_gradients(first, {x, x}), Error);
}

TEST(Graph, ErrorsOfBackwardSayWhatIsWrong) {
  const Tensor x = leaf({2, 3}, 1);
  const Tensor out = ops::mul(x, x);
  EXPECT_ERROR(testing::error_of([] { backward(Tensor::zeros({1})); }), "backward", "one that does not");
  EXPECT_ERROR(testing::error_of([&] { backward(out); }), "backward", "shape [2, 3]");
  EXPECT_ERROR(testing::error_of([&] { backward(out, Tensor::zeros({3, 2}, DType::f64)); }), "backward", "[3, 2]");
  backward(out, Tensor::zeros({2, 3}, DType::f64));
  EXPECT_ERROR(testing::error_of([&] {
                 backward(out, Tensor::zeros({2, 3}, DType::f64));
               }),
               "backward", "one that has");
  Tensor integers = Tensor::zeros({2}, DType::i32);
  EXPECT_ERROR(testing::error_of([&] { set_requires_grad(integers, true); }), "requires_grad", "i32");
}

// A node whose backward function gives what the test says.
Tensor with_gradients(const std::vector<Tensor>& inputs, const std::vector<Tensor>& gradients) {
  Tensor out = Tensor::zeros({2}, DType::f64);
  record(out, "made", inputs, [gradients](const Tensor&) { return gradients; });
  return out;
}

TEST(Graph, AGradientOfAnotherShapeThanTheFirstIsAnError) {
  const Tensor x = leaf({2}, 1), one = Tensor::full({2}, 1, DType::f64);
  EXPECT_ERROR(testing::error_of([&] {
                 backward(with_gradients({x, x}, {one, Tensor::zeros({3}, DType::f64)}), one);
               }),
               "backward", "[3]");
}

TEST(Graph, UndefinedGradientsAreNone) {
  const Tensor x = leaf({2}, 1), y = leaf({2}, 2), one = Tensor::full({2}, 1, DType::f64);
  backward(with_gradients({x, y}, {Tensor(), one}), one);
  EXPECT_FALSE(grad_of(x).defined());
  EXPECT_TRUE(testing::close(grad_of(y), one, 0));
}

// Inputs that share a gradient's memory have their own ones; the sum keeps the dtype of what came first.
TEST(Graph, GradientsThatShareMemoryAreAddedOnce) {
  const Tensor x = leaf({2}, 1), y = leaf({2}, 2), one = Tensor::full({2}, 1, DType::f64);
  const Tensor shared = Tensor::from<double>({2}, {3, 5});
  backward(with_gradients({x, y, x}, {shared, shared, shared}), one);
  EXPECT_TRUE(testing::close(grad_of(x), Tensor::from<double>({2}, {6, 10}), 0));
  EXPECT_TRUE(testing::close(grad_of(y), Tensor::from<double>({2}, {3, 5}), 0));
  EXPECT_TRUE(testing::close(shared, Tensor::from<double>({2}, {3, 5}), 0)) << "it is not ours";
  clear_grad(x);
  backward(with_gradients({x, x}, {Tensor::from<float>({2}, {1, 2}), Tensor::from<double>({2}, {0.5, 0.25})}), one);
  EXPECT_EQ(grad_of(x).dtype(), DType::f64);
  EXPECT_TRUE(testing::close(grad_of(x), Tensor::from<double>({2}, {1.5, 2.25}), 0));
}

TEST(Graph, AStridedGradientIsAddedByItsPlaces) {
  const Tensor x = leaf({2, 3}, 1), rows = Tensor::from<double>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor columns = Tensor::from<double>({3, 2}, {10, 40, 20, 50, 30, 60}).transpose(0, 1);
  Tensor out = Tensor::zeros({2}, DType::f64);
  record(out, "made", {x, x}, [&](const Tensor&) { return std::vector<Tensor>{columns, rows}; });
  backward(out, Tensor::zeros({2}, DType::f64));
  EXPECT_TRUE(testing::close(grad_of(x), Tensor::from<double>({2, 3}, {11, 22, 33, 44, 55, 66}), 0));
  EXPECT_TRUE(grad_of(x).is_contiguous());
}

TEST(Graph, AViewOfALeafsGradientIsNotKept) {
  const Tensor x = leaf({2}, 1), large = Tensor::from<double>({4}, {1, 2, 3, 4});
  backward(with_gradients({x}, {large.narrow(0, 1, 2)}), Tensor::full({2}, 1, DType::f64));
  EXPECT_NE(grad_of(x).storage(), large.storage());
  EXPECT_TRUE(testing::close(grad_of(x), Tensor::from<double>({2}, {2, 3}), 0));
}

TEST(Graph, TheDefaultOptionsFreeTheGraph) {
  const BackwardOptions options;
  EXPECT_FALSE(options.keep_graph);
  EXPECT_FALSE(options.on_leaf || options.on_node);
}

TEST(GradientCheck, ErrorsNameTheInput) {
  const auto first = [](const std::vector<Tensor>& in) { return ops::mul(in[0], in[0]); };
  const Tensor x = Tensor::randn({2}, 1, DType::f64);
  EXPECT_ERROR(testing::error_of([&] { check_gradients(first, {x, x}); }), "check_gradients", "none for input 1");
  EXPECT_ERROR(testing::error_of([&] { check_gradients(first, {Tensor::zeros({2})}); }), "check_gradients", "f32");
}

// The function is linear in its second input, and has a third power of the first: the error of a central difference of
// x³ is step², whatever x is.
TEST(GradientCheck, TakesCentralDifferencesOfItsStep) {
  const auto cube = [](const std::vector<Tensor>& in) {
    return ops::mul(ops::mul(in[0], in[0]), ops::mul(in[0], in[1]));
  };
  const std::vector<Tensor> inputs{Tensor::full({1}, 0.125, DType::f64), Tensor::full({1}, 1, DType::f64)};
  const double weight = std::abs(Tensor::randn({1}, 17, DType::f64).data<double>()[0]);
  for (const double step : {0.25, 0.5}) {
    const GradientCheck check = check_gradients(cube, inputs, step);
    EXPECT_EQ(check.input, 0);
    EXPECT_EQ(check.element, 0);
    EXPECT_NEAR(std::abs(check.numerical - check.analytic), weight * step * step, 1e-12);
    EXPECT_NEAR(std::abs(check.analytic), weight * 3 * 0.125 * 0.125, 1e-12);
    const double largest = std::max({1.0, std::abs(check.numerical), std::abs(check.analytic)});
    EXPECT_NEAR(check.worst, weight * step * step / largest, 1e-12);
  }
  EXPECT_LT(check_gradients(cube, inputs).worst, 5e-10) << "the default is a small step";
  const GradientCheck none;
  EXPECT_EQ(none.input, -1);
  EXPECT_EQ(none.element, -1);
  EXPECT_EQ(inputs[0].data<double>()[0], 0.125) << "the inputs stay";
}

}  // namespace
}  // namespace vitrail::autograd
