/* A terminal of the hub while its program runs: what it has printed, asked for as long as it is shown, and a line to type into it. A
 * terminal of the agent's own is not known to the hub: nothing is printed and nothing can be typed. */
import { h, setText } from './dom.js';
import { cleanOutput } from './text.js';
import { button, report } from './ui.js';

const LOOK_MS = 1000;
const MOST_SHOWN = 20_000; /* characters of its end */

/* What cannot be typed into a line. */
const SIGNS = [['Ctrl C', '\u0003', 'Interrupt the program'], ['Ctrl D', '\u0004', 'End its input']];

/* el: where it stands. It may be taken out and put in again; who does calls el.look(). */
export function terminal(hub, el, terminalId) {
    let timer, atOnce = false;
    const said = h('pre.terminal', { tabindex: '0', role: 'group', 'aria-label': 'Terminal output' }, 'nothing was printed yet');
    const line = h('input.mono', { type: 'text', 'aria-label': 'Type into the terminal', placeholder: 'type a line, then Enter', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false' });
    const type = async text => {
        await hub.call('terminal.write', { terminalId, text });
        atOnce = true;
        clearTimeout(timer);
        timer = setTimeout(look, 100);
    };
    const enter = button('Enter', 'It was not typed', async () => {
        const text = line.value;
        await type(`${text}\n`);
        if (line.value === text)
            line.value = '';
    });
    line.addEventListener('keydown', event => {
        const isInterrupt = event.ctrlKey && event.key === 'c' && line.selectionStart === line.selectionEnd;
        if (event.key !== 'Enter' && !isInterrupt)
            return;
        event.preventDefault();
        if (isInterrupt)
            type(SIGNS[0][1]).catch(error => report('It was not typed', error));
        else
            enter.click();
    });
    const row = h('div.terminal-line', { hidden: true }, line, enter, SIGNS.map(([label, sign, title]) => button(label, 'It was not typed', () => type(sign), { title })));
    el.append(said, row);

    async function look() {
        if (!el.isConnected) {
            timer = undefined;
            return;
        }
        try {
            const { terminal: about, output } = await hub.call('terminal.get', { terminalId });
            const isBelow = said.scrollTop + said.clientHeight >= said.scrollHeight - 20;
            if (output)
                setText(said, cleanOutput(output).slice(-MOST_SHOWN));
            if (isBelow)
                said.scrollTop = said.scrollHeight;
            row.hidden = !about.running || !hub.may('work');
        } catch (error) {
            row.hidden = true;
            if (error.reason === 'terminalNotFound')
                return;
        }
        timer = setTimeout(look, atOnce ? LOOK_MS / 4 : LOOK_MS);
        atOnce = false;
    }
    el.look = () => { timer ??= setTimeout(look); };
    el.look();
}
