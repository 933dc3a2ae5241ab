// `ringlet completion SHELL` in the shell itself: what it offers behind a TAB.
#include <sstream>

#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

bool is_there(const std::string& shell) {
  return Program(ShellLine{"command -v " + shell + " >/dev/null"}).wait().code == 0;
}

class Completion : public ::testing::Test {
 protected:
  /// The shell's own script, in a folder with one file and one folder.
  std::string script(const std::string& shell) {
    write_file(folder_ / "weights.safetensors", "");
    std::filesystem::create_directory(folder_ / "runs");
    const Outcome outcome = ringlet({"completion", shell});
    EXPECT_TRUE(succeeds(outcome));
    write_file(folder_ / "script", outcome.out);
    return folder_ / "script";
  }
  /// What `shell` prints when it runs `text` in that folder.
  std::string run(const std::string& shell, const std::string& text) {
    write_file(folder_ / "test", text);
    const std::string folder = folder_.path().string();
    const Outcome outcome =
        Program(ShellLine{"cd " + folder + " && HOME=" + folder + " " + shell + " test"}).wait();
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    return outcome.out;
  }

 private:
  TemporaryDirectory folder_;
};

struct Question {
  std::string line;
  std::vector<std::string> offered;
  std::vector<std::string> not_offered;
};

const std::vector<Question>& questions() {
  static const std::vector<Question> all{
      {"ringlet tr", {"train"}, {"eval", "--"}},
      {"ringlet train --sy", {"--sync", "--synthetic-train"}, {"--seed", "--model"}},
      {"ringlet train --sync ", {"ring", "naive", "doubling"}, {"--sync"}},
      {"ringlet train --exact --sc", {"--schedule"}, {}},
      {"ringlet train --data s", {"synthetic"}, {"weights"}},
      {"ringlet train --out r", {"runs"}, {"weights"}},
      {"ringlet train --init w", {"weights.safetensors"}, {"runs"}},
      {"ringlet bench ", {"train", "all-reduce", "send-recv"}, {"eval"}},
      {"ringlet bench reduce --r", {"--ranks", "--root"}, {"--strategies"}},
      {"ringlet bench all-reduce --strategies d", {"doubling"}, {"ring"}},
      {"ringlet bench train --js", {"--json"}, {"--init"}},
      {"ringlet completion ", {"bash", "zsh", "fish"}, {}},
      {"ringlet help b", {"bench"}, {"train"}},
      {"ringlet help bench ", {"train", "all-reduce"}, {"eval", "bench"}},
      {"ringlet train --no-decay n", {"norm", "norm,bias"}, {"bias"}},
      {"ringlet help --", {"--man"}, {"--version", "--config"}},
  };
  return all;
}

/// `answers` holds a line "COMMAND LINE> words" for each question.
void check(const std::string& answers) {
  std::istringstream lines(answers);
  for (const Question& question : questions()) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line)) << answers;
    ASSERT_TRUE(line.starts_with(question.line + "> ")) << line;
    const std::string offers = line.substr(question.line.size() + 1) + " ";
    for (const std::string& word : question.offered) EXPECT_TRUE(holds(offers, {" " + word}));
    for (const std::string& word : question.not_offered) {
      EXPECT_EQ(offers.find(" " + word), std::string::npos) << line;
    }
  }
}

TEST_F(Completion, OfBash) {
  if (!is_there("bash")) GTEST_SKIP() << "there is no bash";
  std::string text = "source " + script("bash") +
                     "\nask() {\n  COMP_WORDS=($1); [[ $1 != *' ' ]] || COMP_WORDS+=('')\n"
                     "  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()\n"
                     "  _ringlet 2>/dev/null\n  echo \"$1> ${COMPREPLY[*]}\"\n}\n";
  for (const Question& question : questions()) text += "ask '" + question.line + "'\n";
  check(run("bash", text));
}

TEST_F(Completion, OfBashBehindAnEqualsSign) {
  if (!is_there("bash")) GTEST_SKIP() << "there is no bash";
  const std::string out =
      run("bash", "source " + script("bash") +
                      "\nCOMP_WORDS=(ringlet train --sync = r) COMP_CWORD=4\n"
                      "_ringlet\necho \"${COMPREPLY[*]}\"\ncomplete -p ringlet");
  EXPECT_EQ(out, "ring\ncomplete -F _ringlet ringlet\n");
}

TEST_F(Completion, OfFish) {
  if (!is_there("fish")) GTEST_SKIP() << "there is no fish";
  std::string text = "source " + script("fish") +
                     "\nfunction ask\n  echo \"$argv> \"(complete -C \"$argv\" | "
                     "string replace -r '\\t.*' '' | string join ' ')\nend\n";
  for (const Question& question : questions()) text += "ask '" + question.line + "'\n";
  check(run("fish", text));
}

TEST_F(Completion, OfZsh) {
  if (!is_there("zsh")) GTEST_SKIP() << "there is no zsh";
  // On a terminal of its own, since only there zsh completes; what it typed is echoed.
  const std::string text =
      "zmodload zsh/zpty\nzpty shell PS1=% zsh -f -i\n"
      "zpty -w shell 'autoload -Uz compinit; compinit -u -D; ringlet() echo \"<$*>\"; source " +
      script("zsh") +
      "; echo rea''dy'\nzpty -r shell seen '*ready*'\n"
      "for line in 'completion f' 'train --sched' 'train --sync d' 'bench tr' 'train --init w'; "
      "do\n"
      "  zpty -w -n shell \"ringlet $line\"$'\\t\\n'\n  zpty -r shell seen '*<*>*'\n"
      "  print -r -- $seen\ndone\n";
  const std::string seen = run("timeout 20 zsh -f", text);
  EXPECT_TRUE(holds(seen, {"<completion fish>", "<train --schedule>", "<train --sync doubling>",
                           "<bench train>", "<train --init weights.safetensors>"}));
}

}  // namespace
}  // namespace ringlet::testing
