#include "launcher/man_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "launcher/option_table.hpp"

namespace muster::launcher {

namespace {

constexpr const char* kHead = R"(.TH MUSTER 1 "" "muster @VERSION@" "User Commands"
.nh
.SH NAME
muster \- start distributed training and keep it running
.SH SYNOPSIS
.B muster
.RI [ options ]
.I program
.RI [ arguments ]
.SH DESCRIPTION
Starts the program several times (workers), tells each its rank through the variables that PyTorch's torchrun gives,
restarts all of them when one fails, and ends them all when it ends.
On several nodes the same command is given on each; the nodes meet at \fB\-\-rdzv\-endpoint\fR.
.PP
The first word that is no option is the program; all that follows belongs to it.
A program that is executable is run directly, a \fI.py\fR file by Python (\fBPYTHON_EXEC\fR, the active virtual
environment's, or \fIpython3\fR).
.PP
In options underscores may replace hyphens, and a long name may be cut short where it stays unambiguous.
An option that is not given may come from its variable, or from the file that \fB\-\-config\fR names;
an option comes before its variable, the variable before the file.
)";

constexpr const char* kTail = R"(.SH EXIT STATUS
.TP
.B 0
All workers succeeded.
.TP
.B 1\-255
The first failing worker's own code after the last allowed restart; 128 + n if it was killed by signal n.
.TP
.B 2
The command line is wrong.
.TP
.B 70
muster could not do its own work.
.TP
.B 71
Something of the job could not be killed; the last lines name it.
.TP
.B 75
The rendezvous failed: the same command may work later.
.TP
.BR 126 ", " 127
The program cannot be executed, or was not found.
.TP
.B 128 + n
muster was stopped by signal n.
.SH FILES
.TP
.I FOLDER/JOB/[NODE/]round\-N/rank\-R/{stdout,stderr}.log
The workers' output below \fB\-\-log\-dir\fR, by default a fresh folder in \fI$TMPDIR/muster\-UID\fR.
.TP
.I FOLDER/JOB/[NODE/]status.json
How the job ended.
.SH SEE ALSO
.BR musterd ,
.B musterctl
)";

// Prose: a hyphen stays one that can be searched for and copied.
std::string roff(const std::string& prose) {
  std::string text;
  for (const char byte : prose) {
    if (byte == '\\')
      text += "\\e";
    else if (byte == '-')
      text += "\\-";
    else if ((byte == '.' || byte == '\'') && text.empty())
      text += std::string("\\&") + byte;
    else
      text += byte;
  }
  return text;
}

// "c10d" and "join_timeout" are no words, and stay as they are.
std::string sentence(std::string text) {
  const std::string first = text.substr(0, text.find_first_of(" ,:;"));
  const auto is_letter = [](unsigned char byte) { return std::isalpha(byte) != 0; };
  if (std::all_of(first.begin(), first.end(), is_letter))
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text + ".";
}

std::string entry(const OptionRow& row) {
  std::string names = *row.short_name ? fmt::format("\\fB{}\\fR, ", roff(row.short_name)) : "";
  names += fmt::format("\\fB{}\\fR", roff(row.long_name));
  if (!row.is_flag()) names += fmt::format(" \\fI{}\\fR", roff(row.value_name));
  std::string text = fmt::format(".TP\n{}\n{}\n", names, roff(sentence(row.help)));
  if (*row.fallback) text += fmt::format("Default: {}.\n", roff(row.fallback));
  if (*row.variable) text += fmt::format("Variable: \\fB{}\\fR.\n", row.variable);
  return text;
}

}  // namespace

std::string man_page(const std::string& version) {
  std::string text = kHead;
  text.replace(text.find("@VERSION@"), 9, version);
  text += ".SH OPTIONS\n";
  std::string last_heading;
  for (const OptionRow& row : option_table()) {
    if (heading(row.section) != last_heading) text += fmt::format(".SS {}\n", roff(heading(row.section)));
    last_heading = heading(row.section);
    text += entry(row);
  }
  return text + kTail;
}

}  // namespace muster::launcher
