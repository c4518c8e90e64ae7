// SPDX-License-Identifier: Apache-2.0
#pragma once
// A training run under way.  run.cpp sets it up, saves and resumes it; run_steps.cpp trains an epoch;
// run_evaluation.cpp measures, and keeps the best weights.  All processes of a run go the same way through it: what
// depends on one of them (a signal, a clock, an image) is agreed on first, and only the leader touches the folder and
// calls back.
#include <memory>
#include <optional>
#include <string>

#include "vitrail/tensor/caching_allocator.h"
#include "vitrail/train/checkpoint.h"
#include "vitrail/train/model_setup.h"
#include "vitrail/train/process_group_internal.h"
#include "vitrail/train/run_folder_internal.h"
#include "vitrail/train/throughput_meter_internal.h"
#include "vitrail/train/trainer.h"
#include "vitrail/train/training_step_internal.h"

namespace vitrail::train {

struct StopRequested {};  // thrown out of an evaluation that nobody waits for any more

class Run {
 public:
  Run(const Recipe& recipe, const TrainerOptions& options, const TrainerCallbacks& callbacks, int threads);
  TrainingResult run();

 private:
  // run.cpp
  image::EvalTransform transform();
  std::unique_ptr<Teacher> teacher() const;
  void introduce() const;
  void restore();
  void restore_leader();
  void save();
  Counters counters_now() const;
  TrainingResult result(bool stopped) const;
  void say(const std::string& message) const;
  bool stop_requested() const { return crew_.any(callbacks_.stop && callbacks_.stop()); }
  double seconds() const { return counters_.seconds + meter_.seconds(); }  // over all resumptions

  // run_steps.cpp
  bool train_epoch();
  void after_batch(const BatchOutcome& outcome, int64_t skipped);
  void after_step(const StepOutcome& outcome);
  void log_interval(const StepOutcome& outcome);
  void report_progress() const;
  bool save_is_due() const;
  bool end_step(const StepOutcome& outcome);

  // run_evaluation.cpp
  Evaluation evaluate_part(const Part& part, Progress::Phase phase);
  Evaluation evaluate_average();
  void finish_epoch();
  void log_validation(const EpochResult& result);
  void keep_best(const EpochResult& result, bool average_is_better);
  void load_best();
  void final_evaluation();
  void write_report_of(const Evaluation& evaluation, const Part& part, bool finished) const;

  CachingAllocatorScope memory_;  // each step asks for the blocks that the one before gave back
  ProcessGroup crew_;
  Recipe recipe_;
  const TrainerCallbacks& callbacks_;
  int threads_;
  std::unique_ptr<const RunFolder> folder_;  // the leader's; null in other processes
  std::optional<CheckpointState> state_;     // what was resumed; its tensors are given back once they are copied
  RunData data_;
  PreparedModel prepared_;
  image::EvalTransform transform_;
  data::Loader loader_;
  int64_t batches_, steps_;  // of an epoch: batches, optimiser steps
  TrainingStep stepper_;
  Position at_;
  Counters counters_;
  std::optional<MetricsLog> journal_;  // the leader's
  ThroughputMeter meter_;
  Clock::time_point saved_ = Clock::now();
  int64_t saved_step_ = 0;
  int64_t skipped_here_ = 0;  // images that this process has skipped in the step
};

}  // namespace vitrail::train
