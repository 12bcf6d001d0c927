#!/usr/bin/env node
// Version, help, completion scripts and what docker asks a plugin are answered from texts made at build time: loading
// the program for them costs twice the CPU.
const { existsSync, mkdirSync, readFileSync, statSync, writeSync } = require('node:fs');
const { basename, dirname, join } = require('node:path');

const lib = join(__dirname, '..', 'lib');
const plugin = asPlugin(process.argv.slice(2));
const argv = plugin ?? process.argv.slice(2);

function built() {
  try {
    return JSON.parse(readFileSync(join(lib, 'help.json'), 'utf8'));
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    fail(`manifest-publish is not built: ${lib} is missing`, `Run npm ci && npm run build in ${join(lib, '..')}.`);
    return undefined;
  }
}

/**
 * What docker calls its plugin with, as words of ours: it puts its own flags and the name of the plugin before them.
 * Undefined: this is no such call.
 *
 * @see https://github.com/docker/cli/blob/v28.2.2/cli/flags/options.go
 */
function asPlugin(words) {
  const valued = ['-c', '--context', '-H', '--host', '-l', '--log-level', '--tlscacert', '--tlscert', '--tlskey'];
  const plain = ['--tls', '--tlsverify'];
  const kept = [];
  let folder;
  for (let at = 0; at < words.length; at++) {
    const [name, inline] = words[at].split(/=(.*)/s, 2);
    if (name === 'mpublish') {
      // To docker it is the folder of its settings, to us a file of ours.
      if (folder) process.env.DOCKER_CONFIG = folder;
      return [...kept, ...words.slice(at + 1)];
    }
    if (name === '--config') folder = inline ?? words[++at];
    else if (valued.includes(name)) at += inline === undefined ? 1 : 0;
    else if (name === '--debug' || name === '-D') kept.push('--debug');
    else if (name === 'help') kept.push('help');
    else if (!plain.includes(name)) break;
  }
  return basename(process.argv[1]) === 'docker-mpublish' ? words : undefined;
}

/** The help that is asked for, if any: `--help` or `-h` before a `--`, `help` as the first word, or no word at all. */
function helpFor({ help }) {
  const end = argv.indexOf('--');
  const own = end < 0 ? argv : argv.slice(0, end);
  const asked = argv.length === 0 || own[0] === 'help' || own.includes('--help') || own.includes('-h');
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

/** As docker's plugin we are called by another name. */
function inOurName(text) {
  return plugin === undefined
    ? text
    : text.replace(/(\$ |Run |or |after: )manifest-publish (?=[[a-zC])/g, '$1docker mpublish ');
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

/** Under sudo HOME may still be the user's, who could then write what root runs. `shared`: rights that nobody else may have. */
function isOurs(folder, shared) {
  if (process.getuid === undefined) return true;
  const { uid, mode } = statSync(folder);
  return uid === process.getuid() && (mode & shared) === 0;
}

/**
 * Node 22.1 and later: spares a run a tenth of its CPU. Not where Node puts it by itself, in the folder for temporary
 * files, which on Linux is everybody's: what lies there is code that would run with the user's credentials.
 * NODE_COMPILE_CACHE and NODE_DISABLE_COMPILE_CACHE have the last word.
 */
function keepCompiled() {
  const { enableCompileCache } = require('node:module');
  if (enableCompileCache === undefined) return;
  const { HOME, NODE_COMPILE_CACHE, NODE_DISABLE_COMPILE_CACHE, XDG_CACHE_HOME } = process.env;
  const caches = XDG_CACHE_HOME || (HOME && join(HOME, '.cache'));
  if (!caches || NODE_COMPILE_CACHE || NODE_DISABLE_COMPILE_CACHE) return;
  const folder = join(caches, 'manifest-publish');
  try {
    // One by one: Node tries for ever where a file system answers ENOENT to mkdir, as /proc does.
    for (const each of [caches, folder]) {
      if (existsSync(each)) continue;
      if (!isOurs(dirname(each), 0)) return;
      mkdirSync(each, 0o700);
    }
    if (!isOurs(folder, 0o022)) return;
  } catch (error) {
    if (error.code === undefined) throw error;
    return;
  }
  enableCompileCache(folder);
}

function start() {
  const texts = built();
  if (texts === undefined) return;
  if (argv[0] === '--version' || argv[0] === '-v') {
    print(`${texts.name}/${texts.version} ${process.platform}-${process.arch} node-${process.version}\n`);
    return;
  }
  if (argv[0] === 'docker-cli-plugin-metadata') {
    print(texts.plugin);
    return;
  }
  if (argv.length === 2 && argv[0] === 'completion' && ['bash', 'zsh', 'fish'].includes(argv[1])) {
    print(readFileSync(join(lib, 'completion', argv[1])));
    return;
  }
  const help = helpFor(texts);
  if (help !== undefined) {
    print(inOurName(help));
    return;
  }
  knowTheUser();
  keepCompiled();
  require(join(lib, 'program.cjs')).run(argv);
}

start();
