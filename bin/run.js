#!/usr/bin/env node
// Version and help are answered from texts made at build time: loading the program for them costs three times the CPU.
const { readFileSync, writeSync } = require('node:fs');
const { join } = require('node:path');

const lib = join(__dirname, '..', 'lib');
const argv = process.argv.slice(2);

function built() {
  try {
    return JSON.parse(readFileSync(join(lib, 'help.json'), 'utf8'));
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    fail(`manifest-publish is not built: ${lib} is missing`, `Run npm ci && npm run build in ${join(lib, '..')}.`);
    return undefined;
  }
}

/** The help that is asked for, if any: `--help` or `-h` before a `--`, `help` as the first word, or no word at all. */
function helpFor({ help }) {
  const end = argv.indexOf('--');
  const own = end < 0 ? argv : argv.slice(0, end);
  const asked = own.length === 0 || own[0] === 'help' || own.includes('--help') || own.includes('-h');
  const words = own.filter((word) => !word.startsWith('-') && word !== 'help');
  for (let at = 0; at < words.length; at++) {
    const two = help[`${words[at]} ${words[at + 1]}`];
    const one = help[words[at]];
    // A topic by itself is not a command: it answers with what is below it.
    if (asked || (words.length === 1 && own.length === 1 && /^ {2,}\S.*\bCOMMAND$/m.test(one ?? ''))) {
      if (two !== undefined || one !== undefined) return two ?? one;
    }
  }
  return asked && words.length === 0 ? help[''] : undefined;
}

function print(text) {
  let rest = Buffer.from(text);
  try {
    while (rest.length > 0) rest = rest.subarray(writeSync(1, rest));
  } catch (error) {
    // The pipe is full, so the stream has to wait for it.
    if (error.code === 'EAGAIN') process.stdout.on('error', unprinted).write(rest);
    else unprinted(error);
  }
}

function unprinted(error) {
  // Whoever reads us may stop reading.
  if (error.code === 'EPIPE') return;
  fail(`cannot write to stdout (${error.code})`, 'Make room where stdout goes, or send it elsewhere.');
}

function fail(message, hint) {
  process.exitCode = 8;
  try {
    writeSync(2, `error: ${message}\nhint: ${hint}\n`);
  } catch (error) {
    // Where stderr is full too, nobody is left to tell: the exit code says it.
    if (error.code === undefined) throw error;
  }
}

/** A container may run as a user that no passwd file knows: then Node cannot tell home and shell, and oclif falls. */
function knowTheUser() {
  if (process.env.HOME && process.env.SHELL) return;
  try {
    require('node:os').userInfo();
  } catch (error) {
    if (error.code !== 'ERR_SYSTEM_ERROR') throw error;
    process.env.HOME ||= '/';
    process.env.SHELL ||= '/bin/sh';
  }
}

function start() {
  const texts = built();
  if (texts === undefined) return;
  if (argv[0] === '--version' || argv[0] === '-v') {
    print(`${texts.name}/${texts.version} ${process.platform}-${process.arch} node-${process.version}\n`);
    return;
  }
  const help = helpFor(texts);
  if (help !== undefined) {
    print(help);
    return;
  }
  knowTheUser();
  // Node 22.1 and later: a seventh of the CPU of a command.
  require('node:module').enableCompileCache?.();
  require(join(lib, 'main.cjs')).main(argv, lib);
}

start();
