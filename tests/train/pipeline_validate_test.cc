// Each kind of fault of a pipeline, planted in a good one, is found and named with its stage.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "train/loop/stage_link.h"
#include "train/pipeline/schedules.h"
#include "train/pipeline/validate.h"

namespace ringlet::train {
namespace {

Pipeline good_pipeline() { return make_pipeline(PipelineSchedule::one_f_one_b, 3, 4); }

Program& program_of_stage(Pipeline& pipeline, int stage) {
  return pipeline.programs[static_cast<std::size_t>(stage)];
}

/// Where a stage has the action that reads `text`, which it must have.
Program::iterator action_at(Pipeline& pipeline, int stage, const std::string& text) {
  Program& program = program_of_stage(pipeline, stage);
  const auto found = std::find_if(program.begin(), program.end(),
                                  [&](const Action& action) { return text_of(action) == text; });
  EXPECT_NE(found, program.end()) << "stage " << stage << " has no " << text;
  return found;
}

void swap_actions(Pipeline& pipeline, int stage, const std::string& one, const std::string& two) {
  std::swap(*action_at(pipeline, stage, one), *action_at(pipeline, stage, two));
}

/// `one` comes to stand right before `two`, which was before it.
void bring_before(Pipeline& pipeline, int stage, const std::string& one, const std::string& two) {
  const auto from = action_at(pipeline, stage, one), to = action_at(pipeline, stage, two);
  ASSERT_LT(to, from);
  std::rotate(to, from, from + 1);
}

std::string told_of(const Pipeline& pipeline) {
  try {
    validate(pipeline);
  } catch (const ContractError& error) {
    return error.what();
  }
  return "nothing";
}

TEST(PipelineValidate, TakesAGoodOne) { EXPECT_EQ(told_of(good_pipeline()), "nothing"); }

TEST(PipelineValidate, FindsAPassThatIsMissing) {
  Pipeline pipeline = good_pipeline();
  program_of_stage(pipeline, 1).erase(action_at(pipeline, 1, "F2"));
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': stage 1 never does F2");
  pipeline = good_pipeline();
  program_of_stage(pipeline, 2).erase(action_at(pipeline, 2, "B3"));
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': stage 2 never does B3");
}

TEST(PipelineValidate, FindsAPassThatIsThereTwice) {
  Pipeline pipeline = good_pipeline();
  *action_at(pipeline, 1, "F2") = Forward{1};
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': stage 1 does F1 twice");
  pipeline = good_pipeline();
  *action_at(pipeline, 0, "B3") = Backward{2};
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': stage 0 does B2 twice");
}

TEST(PipelineValidate, FindsAPassOfNoMicroBatch) {
  Pipeline pipeline = good_pipeline();
  *action_at(pipeline, 0, "F3") = Forward{4};
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': stage 0 does F4, and there are 4 micro-batches");
  *action_at(pipeline, 0, "F4") = Forward{-1};
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': stage 0 does F-1, and there are 4 micro-batches");
}

TEST(PipelineValidate, FindsABackwardBeforeItsForward) {
  Pipeline pipeline = good_pipeline();
  swap_actions(pipeline, 2, "F1", "B1");
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': stage 2 does B1 before F1");
}

TEST(PipelineValidate, FindsBackwardsOutOfOrder) {
  Pipeline pipeline = make_pipeline(PipelineSchedule::gpipe, 1, 4);
  swap_actions(pipeline, 0, "B1", "B2");
  EXPECT_EQ(told_of(pipeline),
            "pipeline 'gpipe': stage 0 does B1 behind B2, and gradients add in ascending order");
}

TEST(PipelineValidate, FindsForwardsOutOfOrder) {
  Pipeline pipeline = make_pipeline(PipelineSchedule::gpipe, 1, 4);
  swap_actions(pipeline, 0, "F1", "F2");
  EXPECT_EQ(told_of(pipeline),
            "pipeline 'gpipe': stage 0 does F1 behind F2, and batches come in ascending order");
}

TEST(PipelineValidate, FindsAMoveWithoutItsOtherSide) {
  Pipeline pipeline = good_pipeline();
  program_of_stage(pipeline, 1).erase(action_at(pipeline, 1, "receive a1 from 0"));
  EXPECT_EQ(told_of(pipeline),
            "pipeline '1f1b': stage 0 sends activation 1 to stage 1, which never receives it");
  pipeline = good_pipeline();
  program_of_stage(pipeline, 2).erase(action_at(pipeline, 2, "send g3 to 1"));
  EXPECT_EQ(told_of(pipeline),
            "pipeline '1f1b': stage 1 receives gradient 3 from stage 2, which never sends it");
  pipeline = make_pipeline(PipelineSchedule::naive, 2, 1);  // nothing at all is sent that way
  program_of_stage(pipeline, 1).erase(action_at(pipeline, 1, "send g0 to 0"));
  EXPECT_EQ(told_of(pipeline),
            "pipeline 'naive': stage 0 receives gradient 0 from stage 1, which never sends it");
}

TEST(PipelineValidate, FindsAMessageThatIsThereTwice) {
  Pipeline pipeline = good_pipeline();
  const auto first = action_at(pipeline, 0, "send a1 to 1");
  program_of_stage(pipeline, 0).insert(first, Move{Message{1, Payload::activation, 0}, {}});
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': stage 0 sends activation 0 to stage 1 twice");
  pipeline = good_pipeline();
  const auto last = action_at(pipeline, 0, "receive g3 from 1");
  program_of_stage(pipeline, 0).insert(last, Move{{}, Message{1, Payload::gradient, 2}});
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': stage 0 receives gradient 2 from stage 1 twice");
}

TEST(PipelineValidate, FindsMessagesInTwoOrders) {
  Pipeline pipeline = make_pipeline(PipelineSchedule::gpipe, 2, 4);
  swap_actions(pipeline, 1, "receive a1 from 0", "receive a2 from 0");
  EXPECT_EQ(told_of(pipeline),
            "pipeline 'gpipe': stage 0 sends activation 1 to stage 1, which receives activation 2 "
            "first: one order is wanted");
  pipeline = make_pipeline(PipelineSchedule::gpipe, 2, 4);
  swap_actions(pipeline, 0, "receive g2 from 1", "receive g3 from 1");
  EXPECT_EQ(told_of(pipeline),
            "pipeline 'gpipe': stage 1 sends gradient 2 to stage 0, which receives gradient 3 "
            "first: one order is wanted");
}

TEST(PipelineValidate, FindsMessagesThatGoWhereTheyAreNotWanted) {
  const char* const rule = ": activations go to the next stage, gradients to the one before";
  Pipeline pipeline = good_pipeline();
  *action_at(pipeline, 0, "send a0 to 1") = Move{Message{2, Payload::activation, 0}, {}};
  EXPECT_EQ(told_of(pipeline),
            std::string("pipeline '1f1b': stage 0 sends activation 0 to stage 2") + rule);
  pipeline = good_pipeline();
  *action_at(pipeline, 2, "send g3 to 1") = Move{Message{3, Payload::activation, 3}, {}};
  EXPECT_EQ(told_of(pipeline),
            std::string("pipeline '1f1b': stage 2 sends activation 3 to stage 3") + rule);
  pipeline = good_pipeline();
  *action_at(pipeline, 0, "receive g3 from 1") = Move{{}, Message{1, Payload::activation, 3}};
  EXPECT_EQ(told_of(pipeline),
            std::string("pipeline '1f1b': stage 0 receives activation 3 from stage 1") + rule);
  pipeline = good_pipeline();
  *action_at(pipeline, 0, "send a0 to 1") = Move{Message{1, Payload::activation, 9}, {}};
  EXPECT_EQ(told_of(pipeline),
            "pipeline '1f1b': stage 0 sends activation 9 to stage 1, and there are 4 "
            "micro-batches");
  *action_at(pipeline, 0, "send a9 to 1") = Move{};
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': stage 0 has a move of nothing");
}

TEST(PipelineValidate, FindsAPassWithoutItsData) {
  Pipeline pipeline = good_pipeline();
  swap_actions(pipeline, 1, "receive a0 from 0", "F0");
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': stage 1 does F0 before it has activation 0");
  pipeline = good_pipeline();
  swap_actions(pipeline, 0, "receive g3 from 1", "B3");
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': stage 0 does B3 before it has gradient 3");
}

TEST(PipelineValidate, FindsWhatIsSentBeforeItIsThere) {
  Pipeline pipeline = good_pipeline();
  swap_actions(pipeline, 0, "F0", "send a0 to 1");
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': stage 0 sends activation 0 to stage 1 before F0");
  pipeline = good_pipeline();
  swap_actions(pipeline, 2, "B3", "send g3 to 1");
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': stage 2 sends gradient 3 to stage 1 before B3");
}

TEST(PipelineValidate, FindsWhatIsSentTooLateWherePassesShareActivations) {
  for (const auto schedule :
       {PipelineSchedule::naive, PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
    const Pipeline pipeline = make_pipeline(schedule, 3, 5);
    for (int stage = 0; stage < 3; ++stage) EXPECT_NO_THROW(require_sent_at_once(pipeline, stage));
  }
  Pipeline late = make_pipeline(PipelineSchedule::gpipe, 2, 2);
  std::swap(late.programs[0][1], late.programs[0][2]);  // F0 F1, and then what they have made
  ASSERT_EQ(text_of(late.programs[0]).rfind("F0; F1; send a0 to 1", 0), 0U);
  try {
    require_sent_at_once(late, 0);
    FAIL();
  } catch (const ContractError& error) {
    EXPECT_STREQ(error.what(),
                 "pipeline 'gpipe': stage 0 sends activation 0 to stage 1 after another pass has "
                 "run, and keeps none (--recompute stage)");
  }
}

TEST(PipelineValidate, FindsMorePassesThanThereIsRoomFor) {
  Pipeline pipeline = good_pipeline();
  pipeline.most_held[0] = 2;
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': stage 0 holds 3 passes at F2, and has room for 2");
  pipeline = make_pipeline(PipelineSchedule::gpipe, 2, 4);
  pipeline.most_held = make_pipeline(PipelineSchedule::one_f_one_b, 2, 4).most_held;
  EXPECT_EQ(told_of(pipeline),
            "pipeline 'gpipe': stage 0 holds 3 passes at F2, and has room for 2");
}

TEST(PipelineValidate, CountsAPassUntilItsGradientHasLeft) {
  Pipeline pipeline = make_pipeline(PipelineSchedule::naive, 2, 2);
  EXPECT_EQ(passes_held(pipeline.programs[1]), (std::vector<int>{0, 1, 1, 0, 0, 1, 1, 0, 0}));
  bring_before(pipeline, 1, "receive a1 from 0", "send g0 to 0");
  bring_before(pipeline, 1, "F1", "send g0 to 0");
  EXPECT_EQ(told_of(pipeline),
            "pipeline 'naive': stage 1 holds 2 passes at F1, and has room for 1");
}

TEST(PipelineValidate, FindsASyncThatIsNotTheEnd) {
  Pipeline pipeline = good_pipeline();
  program_of_stage(pipeline, 1).pop_back();
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': stage 1 has no sync at its end");
  pipeline = good_pipeline();
  swap_actions(pipeline, 2, "send g3 to 1", "sync");
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': stage 2 has 'send g3 to 1' behind its sync");
  pipeline = good_pipeline();
  program_of_stage(pipeline, 0).push_back(Sync{});
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': stage 0 has 'sync' behind its sync");
}

TEST(PipelineValidate, FindsACircle) {
  // What 1F1B has in one Move, one behind the other: both sides send first.
  Pipeline pipeline = make_pipeline(PipelineSchedule::one_f_one_b, 2, 2);
  for (Program& program : pipeline.programs) {
    Program apart;
    for (const Action& action : program) {
      const Move* move = std::get_if<Move>(&action);
      if (move == nullptr || !move->out || !move->in) {
        apart.push_back(action);
      } else {
        apart.insert(apart.end(), {Move{move->out, {}}, Move{{}, move->in}});
      }
    }
    program = apart;
  }
  EXPECT_EQ(told_of(pipeline),
            "pipeline '1f1b': it never ends: stage 0 sends activation 1 to stage 1, which sends "
            "gradient 0 to stage 0");
}

TEST(PipelineValidate, FindsAPipelineOfNothing) {
  EXPECT_EQ(told_of({.schedule = "none"}),
            "pipeline 'none': there is at least one stage and one micro-batch");
  Pipeline pipeline = good_pipeline();
  pipeline.micro_batches = 0;
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': there is at least one stage and one micro-batch");
  pipeline = good_pipeline();
  pipeline.most_held.pop_back();
  EXPECT_EQ(told_of(pipeline), "pipeline '1f1b': 3 stages have a program, and 2 a bound of passes");
}

}  // namespace
}  // namespace ringlet::train
