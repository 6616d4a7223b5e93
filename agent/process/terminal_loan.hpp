// The terminal, lent to a single worker when it asks for it, so that a debugger or a question to the user
// works although the worker has a process group of its own.
//
// A worker is in the background of its terminal: the kernel stops it (SIGTTIN, SIGTTOU) when it reads from it
// or changes its settings. Then it becomes the foreground group and goes on. From then on Ctrl-C reaches the
// worker and not us. Ctrl-Z stops the worker; we take the terminal back and stop ourselves, so that the shell
// sees its job stopped; when the shell continues us, the worker goes on too.
#pragma once

#include <sys/types.h>

namespace muster::agent {

class TerminalLoan {
 public:
  /// `terminal`: the descriptor that the worker has as its stdin; if it is no terminal, nothing ever happens.
  explicit TerminalLoan(int terminal);
  /// Takes it back.
  ~TerminalLoan();
  TerminalLoan(const TerminalLoan&) = delete;
  TerminalLoan& operator=(const TerminalLoan&) = delete;

  /// To be called on each SIGCHLD while the worker, leader of its group, is not reaped. Blocks while the
  /// shell keeps us stopped.
  void child_changed(pid_t worker);
  void take_back();

  bool lent() const { return lent_; }

 private:
  bool we_are_in_foreground() const;
  void lend(pid_t worker);
  void make_foreground(pid_t group);

  int terminal_;
  bool lent_ = false;
};

}  // namespace muster::agent
